/**
 * The encryption key of stored secrets: `SIGNALBOX_ENCRYPTION_KEY`, or a file in the data folder that is created at the first start.
 *
 * After the variable is set, the key in the file still decrypts, so that an installation can move from the file to the variable.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { Sealing } from "../core/sealing.ts";
import { Secret } from "../core/secret.ts";
import { openSecretFile } from "./secret-file.ts";

const KEY_BYTES = 32;

/** `fromEnvironment`: the current key, then the keys it replaced. */
export function openSealing(fromEnvironment: readonly Secret[], file: string): Sealing {
  const [first, ...older] = fromEnvironment;
  if (first !== undefined && !existsSync(file)) return new Sealing(first, ...older);
  const stored = new Secret(openSecretFile(file, () => randomBytes(KEY_BYTES).toString("hex")).text);
  return first === undefined ? new Sealing(stored) : new Sealing(first, ...older, stored);
}
