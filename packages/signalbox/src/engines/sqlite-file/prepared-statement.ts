/**
 * A compiled statement that returns exact integers: as a number up to 2^53, as a bigint beyond.
 *
 * `node:sqlite` reads either all integers as numbers, and throws on one that does not fit, or all as bigints, which takes 10 to 50 % longer. Few
 * statements ever read an integer beyond 2^53. So a statement reads numbers until it fails, then runs again with bigints. A statement that writes
 * must not run twice: if it returns rows, it reads bigints from the first run.
 */
import type { StatementSync } from "node:sqlite";
import type { SqlValue } from "../../core/sql.ts";

type Row = Record<string, SqlValue>;

export interface RawRows {
  readonly columns: readonly string[];
  readonly rows: SqlValue[][];
  /** Rows changed by a statement without rows of its own. */
  readonly changes: number;
}

/** Of the rows of one run, together. */
export interface RowLimits {
  readonly maxRows: number;
  /** Approximate. */
  readonly maxBytes: number;
}

export class PreparedStatement {
  readonly #statement: StatementSync;
  #isExact = false;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  /** The part of the text that belongs to this statement, if more statements follow. */
  get text(): string {
    return this.#statement.sourceSQL;
  }

  /** Call before the first run of a statement that writes. */
  neverRunTwice(): void {
    if (this.#statement.columns().length > 0) this.#readExactly();
  }

  all(values: readonly SqlValue[]): Row[] {
    if (!this.#isExact) {
      try {
        return this.#statement.all(...values);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ERR_OUT_OF_RANGE") throw error;
        this.#readExactly();
      }
    }
    return this.#statement.all(...values).map(narrow);
  }

  /**
   * Runs the statement and returns rows as arrays of values, with repeated columns. All integers are numbers, also those beyond 2^53. With limits, further rows are
   * not read, and it throws.
   */
  allRaw(values: readonly SqlValue[], limits?: RowLimits): RawRows {
    const columns = this.#statement.columns().map(({ name }) => name);
    if (columns.length === 0)
      return { columns, rows: [], changes: Number(this.#statement.run(...values).changes) };
    this.#readExactly();
    this.#statement.setReturnArrays(true);
    try {
      const rows =
        limits === undefined
          ? (this.#statement.all(...values) as unknown as SqlValue[][])
          : takeWithin(
              this.#statement.iterate(...values) as Iterable<unknown> as Iterable<SqlValue[]>,
              limits,
            );
      for (const row of rows) {
        for (let i = 0; i < row.length; i++) if (typeof row[i] === "bigint") row[i] = Number(row[i]);
      }
      return { columns, rows, changes: 0 };
    } finally {
      this.#statement.setReturnArrays(false);
    }
  }

  /** Reads row by row, so that the caller can stop early. */
  *iterate(values: readonly SqlValue[]): Generator<Row> {
    this.#readExactly();
    for (const row of this.#statement.iterate(...values)) yield narrow(row);
  }

  #readExactly(): void {
    this.#statement.setReadBigInts(true);
    this.#isExact = true;
  }
}

function takeWithin(rows: Iterable<SqlValue[]>, { maxRows, maxBytes }: RowLimits): SqlValue[][] {
  const taken: SqlValue[][] = [];
  let bytes = 0;
  for (const row of rows) {
    for (const value of row) bytes += bytesOf(value);
    if (taken.length === maxRows || bytes > maxBytes)
      throw new RangeError(`The statement returns more than ${maxRows} rows or ${maxBytes} bytes.`);
    taken.push(row);
  }
  return taken;
}

function bytesOf(value: SqlValue): number {
  return typeof value === "string" || value instanceof Uint8Array ? value.length : 8;
}

/** Changes the row in place. */
function narrow(row: Row): Row {
  for (const name in row) {
    const value = row[name];
    if (typeof value === "bigint" && value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER)
      row[name] = Number(value);
  }
  return row;
}

/**
 * Compiled statements of one connection, by the parts of their text. Parts that are constants of the code (the frozen array of a template) are found
 * by identity, all others by their text. The oldest statement is evicted.
 *
 * A thousand connections may be open, each with its own cache. So a statement is kept from its second use on: a program runs many statements only
 * when it starts, and each would hold some kilobytes. The texts of constants are cached once per process, and the maps are created lazily. (Weak
 * maps per connection would be scanned by every garbage collection, although constants are never collected.)
 */

/** Texts of constants, for all connections. */
const constantTexts = new WeakMap<readonly string[], string>();

/** The text of the statement, with a placeholder for each value. */
export function textOf(parts: readonly string[]): string {
  if (!Object.isFrozen(parts)) return parts.join("?");
  let text = constantTexts.get(parts);
  if (text === undefined) {
    text = parts.join("?");
    constantTexts.set(parts, text);
  }
  return text;
}

type Key = readonly string[] | string;

export class StatementCache<T> {
  readonly #statements = new Map<Key, T>();
  /** Statements that were used once. */
  #seen: Set<Key> | null = null;
  readonly #maxSize: number;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get(parts: readonly string[]): T | undefined {
    return this.#statements.get(keyOf(parts));
  }

  /** Keeps the statement, unless this is the first use of its text. */
  set(parts: readonly string[], statement: T): void {
    const key = keyOf(parts);
    const seen = (this.#seen ??= new Set());
    if (!seen.delete(key)) {
      // A program that never repeats itself must not fill the memory with texts.
      if (seen.size >= this.#maxSize * SEEN_FACTOR) seen.clear();
      seen.add(key);
      return;
    }
    this.#statements.set(key, statement);
    if (this.#statements.size <= this.#maxSize) return;
    const oldest = this.#statements.keys().next();
    if (!oldest.done) this.#statements.delete(oldest.value);
  }

  clear(): void {
    this.#statements.clear();
    this.#seen = null;
  }
}

/** Texts that are remembered, for each statement that can be kept. */
const SEEN_FACTOR = 4;

function keyOf(parts: readonly string[]): Key {
  return Object.isFrozen(parts) ? parts : textOf(parts);
}
