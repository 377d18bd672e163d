/** Work by key: what is asked for under a key begins when everything asked for before it under the same key has ended, well or not. */
export class InFlight {
  readonly #running = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => T | Promise<T>): Promise<T> {
    const before = this.#running.get(key) ?? Promise.resolve();
    const outcome = before.then(work, work);
    this.#running.set(key, outcome);
    const forget = () => {
      if (this.#running.get(key) === outcome) this.#running.delete(key);
    };
    outcome.then(forget, forget);
    return outcome;
  }
}
