/** Work that runs one after the other: it begins when all earlier work has ended, successfully or not. The caller receives the failure of its own work. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => T | Promise<T>): Promise<T> {
    const outcome = this.#last.then(work);
    // Later work runs all the same.
    this.#last = outcome.catch(() => undefined);
    return outcome;
  }

  /** Resolves when all work that was given before has ended. */
  async idle(): Promise<void> {
    await this.#last;
  }
}

/** As `Serial`, for each key apart. */
export class SerialByKey {
  readonly #running = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => T | Promise<T>): Promise<T> {
    const before = this.#running.get(key) ?? Promise.resolve();
    const outcome = before.then(work, work);
    this.#running.set(key, outcome);
    const remove = () => {
      if (this.#running.get(key) === outcome) this.#running.delete(key);
    };
    outcome.then(remove, remove);
    return outcome;
  }
}
