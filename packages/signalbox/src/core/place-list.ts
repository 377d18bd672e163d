/**
 * Things that come and go all the time, such as the calls under way. Their order is not kept.
 *
 * A list and not a `Set` or `Map`: V8 replaces the table of one that is added to and deleted from all the time every few dozen changes, and
 * each outgrown table points to its successor. Once one of them is among the old objects, everything that ever was in a later one outlives
 * the collections of young objects; that alone filled a hundred megabytes between two full collections.
 */
export interface Placed {
  /** Where it stands in the list; the list's own. */
  place: number;
}

export class PlaceList<T extends Placed> {
  readonly #items: T[] = [];

  add(item: T): void {
    item.place = this.#items.length;
    this.#items.push(item);
  }

  /** It must be in the list. The last one takes the place that becomes free. */
  delete(item: T): void {
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    last.place = item.place;
    this.#items[item.place] = last;
  }

  /** Those in it now; the list may change while they are gone through. */
  all(): readonly T[] {
    return this.#items.slice();
  }
}
