/** Callbacks for the next time that an instance comes into memory. */
export class Arrivals {
  readonly #callbacks = new Map<string, Set<() => void>>();

  /** Calls back once, when the instance of this key next comes into memory. The returned function cancels that. */
  once(key: string, callback: () => void): () => void {
    const callbacks = this.#callbacks.get(key) ?? new Set();
    callbacks.add(callback);
    this.#callbacks.set(key, callbacks);
    return () => {
      callbacks.delete(callback);
      if (callbacks.size === 0 && this.#callbacks.get(key) === callbacks) this.#callbacks.delete(key);
    };
  }

  arrived(key: string): void {
    const callbacks = this.#callbacks.get(key);
    if (callbacks === undefined) return;
    this.#callbacks.delete(key);
    for (const callback of callbacks) callback();
  }
}
