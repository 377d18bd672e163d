/** The newest `capacity` items; adding one more drops the oldest. Constant time and memory. */
export class Ring<T> {
  readonly #capacity: number;
  readonly #items: T[] = [];
  #next = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The item that had to go, if any. */
  push(item: T): T | undefined {
    if (this.#capacity === 0) return item;
    if (this.#items.length < this.#capacity) {
      this.#items.push(item);
      return undefined;
    }
    const dropped = this.#items[this.#next];
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#capacity;
    return dropped;
  }

  /** Oldest first. */
  toArray(): T[] {
    return [...this.#items.slice(this.#next), ...this.#items.slice(0, this.#next)];
  }

  /** Oldest first; the ring is empty afterwards. */
  drain(): T[] {
    const items = this.toArray();
    this.#items.length = 0;
    this.#next = 0;
    return items;
  }
}
