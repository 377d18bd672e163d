/**
 * Secrets in a file of the data folder that only its owner can read, one a line.
 *
 * Invariants:
 * 1. A secret is durable before it is used: what is encrypted with it, or told to somebody, never outlives it.
 * 2. A file that is empty, or visibly cut, is an error. A new secret in its place would make what depends on the old one unreadable, without an error.
 */
import { readFileSync } from "node:fs";
import { ConfigError } from "../config/index.ts";
import { replaceFile } from "../engines/durable-file/index.ts";

export interface SecretFile {
  readonly text: string;
  /** True if this call created the file. */
  readonly isNew: boolean;
}

/** Reads the secret, or creates the file with the result of `generate`. */
export function openSecretFile(file: string, generate: () => string): SecretFile {
  // Operators put secrets of their own there, short ones and without a line feed.
  const [stored] = readSecrets(file, 0) ?? [];
  if (stored !== undefined) return { text: stored, isNew: false };
  const text = generate();
  replaceFile(file, `${text}\n`);
  return { text, isNew: true };
}

/** Null if there is no file. `length` is that of every complete secret; 0 if they have none. */
export function readSecrets(file: string, length: number): readonly string[] | null {
  const text = readText(file);
  if (text === null) return null;
  const secrets = text.split("\n").flatMap((line) => (line.trim() === "" ? [] : line.trim()));
  const last = secrets.at(-1);
  if (last === undefined)
    throw new ConfigError(
      `${file} is empty: restore it from a backup, or delete it if nothing is needed that depends on the secret; the next start creates another one`,
    );
  // This program ends every line; a text without an end that is as long as a secret was put there by somebody.
  if (!text.endsWith("\n") && last.length < length)
    throw new ConfigError(
      `${file} ends in the middle of a secret: restore it from a backup. If the secret is complete, end the line with a line feed`,
    );
  return secrets;
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
