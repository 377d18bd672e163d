/** A secret that lives in a file of the data folder, readable by its owner only: read if it is there, made if not. */
import { readFileSync, writeFileSync } from "node:fs";

export interface SecretFile {
  readonly text: string;
  /** True when this call made it. */
  readonly isNew: boolean;
}

export function openSecretFile(file: string, make: () => string): SecretFile {
  const stored = readStored(file);
  if (stored !== null) return { text: stored, isNew: false };
  const text = make();
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
