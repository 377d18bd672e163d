/** Runs work by key: work under a key starts when all earlier work under the same key has ended, successfully or not. */
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
