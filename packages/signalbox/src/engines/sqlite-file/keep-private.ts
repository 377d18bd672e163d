/** Makes a database readable by its owner only. SQLite creates files that all users can read; those beside a database get the mode of the database. */
import { chmodSync, closeSync, openSync } from "node:fs";

const OWNER_ONLY = 0o600;
const SUFFIXES = ["", "-wal", "-shm"];

/** Before the file is opened, also if it does not exist yet. What fails here fails again when SQLite opens the file, with a reason. */
export function keepPrivate(path: string): void {
  // Only a new file: closing a descriptor of one in use would drop the locks of this process on it.
  attempt(() => closeSync(openSync(path, "ax", OWNER_ONLY)));
  // An earlier version may have created them.
  for (const suffix of SUFFIXES) attempt(() => chmodSync(path + suffix, OWNER_ONLY));
}

function attempt(step: () => void): void {
  try {
    step();
  } catch {
    // No such file, a folder that cannot be written, a file of another user.
  }
}
