/** Sums of many values in one array, so that adding a call allocates nothing. */
import { WIDTH } from "./totals-blob.ts";

export class SumTable<Value> {
  readonly #places = new Map<Value, number>();
  table = new Float64Array(16 * WIDTH);

  get values(): Value[] {
    return [...this.#places.keys()];
  }

  /** Where the sums of a value are in `table`. */
  placeOf(value: Value): number {
    let place = this.#places.get(value);
    if (place === undefined) {
      place = this.#places.size * WIDTH;
      this.#places.set(value, place);
      if (place + WIDTH > this.table.length) {
        const larger = new Float64Array(this.table.length * 2);
        larger.set(this.table);
        this.table = larger;
      }
    }
    return place;
  }

  add(value: Value, sums: ArrayLike<number>): void {
    const place = this.placeOf(value);
    const { table } = this;
    for (let i = 0; i < WIDTH; i++) table[place + i] = (table[place + i] ?? 0) + (sums[i] ?? 0);
  }
}
