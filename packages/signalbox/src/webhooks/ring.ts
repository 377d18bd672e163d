/** The newest `capacity` items; adding one more drops the oldest. Constant time and memory. */
export class Ring<T> {
  readonly #capacity: number;
  readonly #items: T[] = [];
  #next = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(item: T): void {
    if (this.#items.length < this.#capacity) this.#items.push(item);
    else if (this.#capacity > 0) {
      this.#items[this.#next] = item;
      this.#next = (this.#next + 1) % this.#capacity;
    }
  }

  /** Oldest first. */
  toArray(): T[] {
    return [...this.#items.slice(this.#next), ...this.#items.slice(0, this.#next)];
  }
}
