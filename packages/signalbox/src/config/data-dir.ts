/** The data folder of a command line. Its own file, because commands that only look for a running server need no configuration file. */
import { resolve } from "node:path";

const DEFAULT = ".signalbox";

/** The flag, then `SIGNALBOX_DATA_DIR`, then `.signalbox` in the working folder. An empty variable counts as not set. */
export function dataDirOf(
  flag: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  workingFolder: string,
): string {
  return resolve(workingFolder, flag ?? (environment["SIGNALBOX_DATA_DIR"] || DEFAULT));
}
