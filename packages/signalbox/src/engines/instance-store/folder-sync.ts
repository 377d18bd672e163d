/**
 * Makes new files' names durable: one fsync of a folder covers every file created in it before the call, and calls that come while
 * one runs share the next. A failure is as final as a failed sync of data.
 */
import { open } from "node:fs/promises";

export class FolderSync {
  readonly #folders = new Map<string, { running: Promise<void>; next: Promise<void> | null }>();
  readonly #onFailure: (error: Error) => void;

  constructor(onFailure: (error: Error) => void) {
    this.#onFailure = onFailure;
  }

  sync(path: string): Promise<void> {
    const folder = this.#folders.get(path);
    if (folder === undefined) return this.#start(path);
    folder.next ??= folder.running.then(() => this.#start(path));
    return folder.next;
  }

  #start(path: string): Promise<void> {
    const running = fsyncFolder(path).then(
      () => {
        const folder = this.#folders.get(path);
        if (folder?.running === running) this.#folders.delete(path);
      },
      (cause: unknown) => {
        const failure = new Error("the disk refused to sync a folder; new instances may be lost", { cause });
        this.#onFailure(failure);
        throw failure;
      },
    );
    this.#folders.set(path, { running, next: null });
    return running;
  }
}

async function fsyncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
