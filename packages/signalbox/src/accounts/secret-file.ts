/** A secret in a file of the data folder that only its owner can read. */
import { readFileSync, writeFileSync } from "node:fs";

export interface SecretFile {
  readonly text: string;
  /** True if this call created the file. */
  readonly isNew: boolean;
}

/** Reads the secret, or creates the file with the result of `generate`. */
export function openSecretFile(file: string, generate: () => string): SecretFile {
  const stored = readStored(file);
  if (stored !== null) return { text: stored, isNew: false };
  const text = generate();
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
  return { text, isNew: true };
}

function readStored(file: string): string | null {
  try {
    const text = readFileSync(file, "utf8").trim();
    return text === "" ? null : text;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
