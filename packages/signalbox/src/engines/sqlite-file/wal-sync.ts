/**
 * Makes commits durable without blocking the event loop: SQLite commits with `synchronous=NORMAL` (no sync), and this syncs
 * the `-wal` file in the thread pool, one sync for all commits that came meanwhile.
 *
 * Invariants:
 * 1. A promise from `sync()` resolves only after a sync that started after the call; a sync in flight does not count for it.
 * 2. The descriptor is opened before the first commit and stays open: the kernel reports a write error once per open file.
 * 3. A failed sync is never retried: the kernel may have dropped the dirty pages, so a second success would be a lie. Everything
 *    that waits fails, later calls fail, and `onFailure` ends the process.
 * 4. Only `-wal` is opened here. Closing any descriptor of the main file would drop SQLite's own POSIX locks on it.
 */
import { type FileHandle, open } from "node:fs/promises";

export class WalSync {
  readonly #file: FileHandle;
  readonly #onFailure: (error: Error) => void;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #failure: Error | null = null;

  private constructor(file: FileHandle, onFailure: (error: Error) => void) {
    this.#file = file;
    this.#onFailure = onFailure;
  }

  static async open(databasePath: string, onFailure: (error: Error) => void): Promise<WalSync> {
    return new WalSync(await open(`${databasePath}-wal`, "r+"), onFailure);
  }

  sync(): Promise<void> {
    if (this.#running === null) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  /** Waits for the sync in flight, if any, and closes the descriptor. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next]);
    await this.#file.close();
  }

  #start(): Promise<void> {
    this.#next = null;
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const running = this.#file.datasync().then(
      () => {
        if (this.#running === running) this.#running = null;
      },
      (cause: unknown) => {
        this.#failure = new Error("the disk refused to sync; what was not acknowledged may be lost", {
          cause,
        });
        if (this.#running === running) this.#running = null;
        this.#onFailure(this.#failure);
        throw this.#failure;
      },
    );
    this.#running = running;
    return running;
  }
}
