/**
 * Where the key for sealed secrets comes from: `SIGNALBOX_ENCRYPTION_KEY`, else a file of the data folder that is made at the first start.
 *
 * A key that was in the file still opens what it sealed after the variable is set, so that an installation can move from one to the other.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { Sealing } from "../core/sealing.ts";
import { Secret } from "../core/secret.ts";
import { openSecretFile } from "./secret-file.ts";

const KEY_BYTES = 32;

/** `fromEnvironment` holds the key in use first, then those it replaced. */
export function openSealing(fromEnvironment: readonly Secret[], file: string): Sealing {
  const [first, ...older] = fromEnvironment;
  if (first !== undefined && !existsSync(file)) return new Sealing(first, ...older);
  const stored = new Secret(openSecretFile(file, () => randomBytes(KEY_BYTES).toString("hex")).text);
  return first === undefined ? new Sealing(stored) : new Sealing(first, ...older, stored);
}
