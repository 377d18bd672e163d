/**
 * Things in the order they were last used. Using one costs a few assignments; moving it to the end of a `Map` instead leaves a gap in the
 * map's table each time, and thousands of gaps a second have the table made anew all the time.
 */
export interface Ranked<T> {
  /** Neighbours in the list; the list's own. Null at its ends and outside of it. */
  older: T | null;
  newer: T | null;
}

export class RecencyList<T extends Ranked<T>> {
  #oldest: T | null = null;
  #newest: T | null = null;

  /** Makes it the newest, whether or not it was in the list. */
  use(item: T): void {
    if (item === this.#newest) return;
    this.delete(item);
    item.older = this.#newest;
    if (this.#newest === null) this.#oldest = item;
    else this.#newest.newer = item;
    this.#newest = item;
  }

  /** Nothing happens when it is not in the list. */
  delete(item: T): void {
    if (item.older !== null) item.older.newer = item.newer;
    else if (this.#oldest === item) this.#oldest = item.newer;
    if (item.newer !== null) item.newer.older = item.older;
    else if (this.#newest === item) this.#newest = item.older;
    // An item that has left must not hold on to others.
    item.older = null;
    item.newer = null;
  }

  /** The one that is handed out may be deleted meanwhile, and no other. */
  *oldestFirst(): Generator<T> {
    let item = this.#oldest;
    while (item !== null) {
      const { newer } = item;
      yield item;
      item = newer;
    }
  }
}
