/**
 * Makes the names of new files durable. One fsync of a folder covers every file created in the folder before the call; calls during an fsync
 * share the next one. A failed fsync is final, as a failed sync of data is.
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
        const failure = new Error(`fsync of the folder ${path} failed; new instances may be lost`, { cause });
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
