/** The folder of a test's service: in memory where the system has such a place, otherwise temporary, or one that the test names and keeps. */
import { accessSync, constants, cpSync, mkdtempSync, renameSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** A file system in memory on Linux. */
const MEMORY = "/dev/shm";
/** Containers often have 64 MB there, which several tests at once could fill. */
const MIN_FREE_BYTES = 256 * 1024 * 1024;

export class TestFolder {
  readonly path: string;
  readonly #isOwn: boolean;

  constructor(given: string | undefined) {
    this.#isOwn = given === undefined;
    this.path = given === undefined ? mkdtempSync(join(fastFolder(), "signalbox-test-")) : resolve(given);
  }

  /** Copies the files as a process that is killed now would leave them. Synchronous: nothing is written in the meantime. */
  snapshot(): string {
    const copy = mkdtempSync(`${this.path}-crash-`);
    cpSync(this.path, copy, { recursive: true });
    return copy;
  }

  /** Puts a snapshot in the place of the folder, which nothing uses any more. */
  restore(snapshot: string): void {
    rmSync(this.path, { recursive: true, force: true });
    renameSync(snapshot, this.path);
  }

  remove(): void {
    if (this.#isOwn) rmSync(this.path, { recursive: true, force: true });
  }
}

function fastFolder(): string {
  try {
    accessSync(MEMORY, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= MIN_FREE_BYTES ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}
