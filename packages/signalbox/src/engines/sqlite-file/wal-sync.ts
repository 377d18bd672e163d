/**
 * Makes commits durable without blocking the event loop: with `synchronous=NORMAL` SQLite does not sync at a commit, and this class syncs the
 * `-wal` file in the thread pool. Commits during a sync share the next sync.
 *
 * Invariants:
 * 1. A promise from `sync()` resolves only after a sync that started after the call.
 * 2. The descriptor is opened before the first commit and stays open: the kernel reports a write error once per open file.
 * 3. A failed sync is never retried: the kernel may have dropped the dirty pages, so that a second sync would succeed without them. All pending
 *    and later calls fail, and `onFailure` ends the process.
 * 4. Only `-wal` is opened here. Closing any descriptor of the main file would drop SQLite's POSIX locks on it.
 * See README.md.
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

  /** Waits for the running sync, if any, and closes the descriptor. */
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
        this.#failure = new Error("fdatasync of the WAL failed; unacknowledged commits may be lost", {
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
