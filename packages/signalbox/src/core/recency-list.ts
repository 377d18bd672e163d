/**
 * Items in order of last use, as a linked list: moving an item to the end costs a few assignments, whereas deleting and re-adding a `Map` entry
 * leaves a hole in the hash table, and V8 rebuilds the table when it is full of holes (see also decision 0050).
 */
export interface Ranked<T> {
  /** Neighbours in the list; set by the list. Null at its ends and outside of it. */
  older: T | null;
  newer: T | null;
}

export class RecencyList<T extends Ranked<T>> {
  #oldest: T | null = null;
  #newest: T | null = null;

  /** Makes the item the newest. Adds it if it is not in the list. */
  use(item: T): void {
    if (item === this.#newest) return;
    this.delete(item);
    item.older = this.#newest;
    if (this.#newest === null) this.#oldest = item;
    else this.#newest.newer = item;
    this.#newest = item;
  }

  /** Removes the item. No effect if it is not in the list. */
  delete(item: T): void {
    if (item.older !== null) item.older.newer = item.newer;
    else if (this.#oldest === item) this.#oldest = item.newer;
    if (item.newer !== null) item.newer.older = item.older;
    else if (this.#newest === item) this.#newest = item.older;
    // A removed item must not keep others alive.
    item.older = null;
    item.newer = null;
  }

  /** Only the current item may be deleted during iteration. */
  *oldestFirst(): Generator<T> {
    let item = this.#oldest;
    while (item !== null) {
      const { newer } = item;
      yield item;
      item = newer;
    }
  }
}
