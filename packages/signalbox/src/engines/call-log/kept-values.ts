/**
 * Values that were read from days, each with the version that its day had before it was read.
 *
 * Invariants:
 * 1. A value is returned only while its day has the same version, so a change of the day makes the value stale, never wrong.
 * 2. The rows of all values are at most `maxRows`; the values that were used least recently are dropped first. The text of a query, which a caller may
 *    make long, counts as rows of the same size.
 */

/** About what a row of a value takes. */
const ROW_BYTES = 100;

interface Kept {
  readonly version: string | number;
  readonly value: unknown;
  readonly rows: number;
}

export class KeptValues {
  readonly #maxRows: number;
  /** By day and query, the most recently used last. */
  readonly #kept = new Map<string, Kept>();
  #rows = 0;

  constructor(maxRows: number) {
    this.#maxRows = maxRows;
  }

  /** Rows of all values. */
  get rows(): number {
    return this.#rows;
  }

  /** Undefined if the value has to be read. */
  find<T>(
    key: string,
    version: string | number,
    isEnough: (value: T) => boolean = () => true,
  ): T | undefined {
    const known = this.#kept.get(key);
    if (known === undefined || known.version !== version || !isEnough(known.value as T)) return undefined;
    this.#kept.delete(key);
    this.#kept.set(key, known);
    return known.value as T;
  }

  keep(key: string, version: string | number, value: unknown, rows: number): void {
    this.#drop(key);
    const own = rows + Math.ceil(key.length / ROW_BYTES);
    this.#kept.set(key, { version, value, rows: own });
    this.#rows += own;
    for (const oldest of this.#kept.keys()) {
      if (this.#rows <= this.#maxRows) return;
      this.#drop(oldest);
    }
  }

  /** Drops the values whose keys begin with the text. */
  forget(start: string): void {
    for (const key of this.#kept.keys()) if (key.startsWith(start)) this.#drop(key);
  }

  #drop(key: string): void {
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#kept.delete(key)) this.#rows -= kept.rows;
  }
}
