/** Where the root token comes from: the environment, else a file in the data folder, else it is made now and shown once. */
import { readFileSync, writeFileSync } from "node:fs";
import { generateToken } from "@signalbox/protocol";
import { Secret } from "../core/secret.ts";

export interface RootToken {
  readonly secret: Secret;
  /** True on the start that made it: the only time it is printed. */
  readonly isNew: boolean;
}

export function openRootToken(fromEnvironment: Secret | undefined, file: string): RootToken {
  if (fromEnvironment !== undefined) return { secret: fromEnvironment, isNew: false };
  const stored = readStored(file);
  if (stored !== null) return { secret: new Secret(stored), isNew: false };
  const text = generateToken();
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
  return { secret: new Secret(text), isNew: true };
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
