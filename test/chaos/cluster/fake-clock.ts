/**
 * The system clock of one node, which a test sets while the node runs: libfaketime reads the difference from a file. The monotonic clock stays
 * as it is, as it does when the clock of a machine is set.
 */
import { existsSync, globSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";

export const FAKETIME_IS_MISSING =
  "libfaketime is missing. Install it (Debian and Ubuntu: apt-get install faketime) or set FAKETIME_PATH to libfaketime.so.1.";

export function findFaketime(environment: NodeJS.ProcessEnv = process.env): string | null {
  const path = environment["FAKETIME_PATH"] ?? globSync("/usr/lib/*/faketime/libfaketime.so.1")[0];
  return path !== undefined && existsSync(path) ? path : null;
}

export class FakeClock {
  readonly #file: string;
  #stepMs = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** For the environment of the node. */
  get environment(): Readonly<Record<string, string>> {
    const library = findFaketime();
    if (library === null) throw new Error(FAKETIME_IS_MISSING);
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      // Seconds between two readings of the file.
      FAKETIME_CACHE_DURATION: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }

  /** How far it was set in the current or last fault. */
  get stepMs(): number {
    return this.#stepMs;
  }

  /** The node sees it within a second. */
  async set(offsetS: number): Promise<void> {
    this.#stepMs = Math.max(this.#stepMs, Math.abs(offsetS) * 1000);
    // Renamed, so that a reader never finds an empty file.
    await writeFile(`${this.#file}.new`, `${offsetS < 0 ? "-" : "+"}${Math.abs(offsetS)}`);
    await rename(`${this.#file}.new`, this.#file);
  }
}
