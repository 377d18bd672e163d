/**
 * An unordered set of short-lived items, such as the calls in progress, as an array: V8 replaces the hash table of a `Set` with frequent
 * additions and deletions every few dozen changes, each old table points to its successor, and one table in the old generation therefore
 * keeps all later items alive until the next full collection (decision 0050).
 */
export interface Placed {
  /** Index in the list; set by the list. */
  place: number;
}

export class PlaceList<T extends Placed> {
  readonly #items: T[] = [];

  add(item: T): void {
    item.place = this.#items.length;
    this.#items.push(item);
  }

  /** Removes an item of the list. The last item takes its place. */
  delete(item: T): void {
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    last.place = item.place;
    this.#items[item.place] = last;
  }

  /** Returns a copy: the list may change during iteration. */
  all(): readonly T[] {
    return this.#items.slice();
  }
}
