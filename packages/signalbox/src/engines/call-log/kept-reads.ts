/**
 * What a reader has read from day files, kept until the file changes. A day that is over rarely changes, so the next page of a list reads today's file only.
 *
 * Invariants:
 * 1. A value is returned only while its file is as it was when the value was read: SQLite gives a connection another `data_version` when another
 *    connection has committed. The version is read before the value, so a commit in between makes the value stale, never wrong.
 * 2. The rows of all values are at most `maxRows`; the values that were used least recently are dropped first. The text of a query, which a caller may
 *    make long, counts as rows of the same size.
 * 3. A file that is opened again is another file.
 */
import { rawSql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";

/** About what a row of a value takes. */
const ROW_BYTES = 100;
const DATA_VERSION = rawSql("PRAGMA data_version");

export interface KeptFile {
  readonly connection: SqliteConnection;
  /** Distinguishes open files. */
  readonly number: number;
}

interface Kept {
  readonly file: number;
  readonly version: number;
  readonly value: unknown;
  readonly rows: number;
}

export class KeptReads {
  readonly #maxRows: number;
  /** By file and query, the most recently used last. */
  readonly #kept = new Map<string, Kept>();
  #rows = 0;

  constructor(maxRows: number) {
    this.#maxRows = maxRows;
  }

  /** Rows of all values. */
  get rows(): number {
    return this.#rows;
  }

  /** The value of the query if it is kept and `isEnough`; else reads it, and keeps it if it has a number of rows. */
  read<T>(
    file: KeptFile,
    query: readonly unknown[],
    read: () => { readonly value: T; readonly rows: number | null },
    isEnough: (value: T) => boolean = () => true,
  ): T {
    const key = `${file.number} ${JSON.stringify(query)}`;
    const version = file.connection.get<{ data_version: number }>(DATA_VERSION)?.data_version ?? Number.NaN;
    const known = this.#kept.get(key);
    if (known !== undefined && known.version === version && isEnough(known.value as T)) {
      this.#kept.delete(key);
      this.#kept.set(key, known);
      return known.value as T;
    }
    const { value, rows } = read();
    if (rows !== null) {
      const own = Math.ceil(key.length / ROW_BYTES);
      this.#keep(key, { file: file.number, version, value, rows: rows + own });
    }
    return value;
  }

  /** The file has been closed. */
  forget({ number }: Pick<KeptFile, "number">): void {
    for (const [key, { file }] of this.#kept) if (file === number) this.#drop(key);
  }

  #keep(key: string, kept: Kept): void {
    this.#drop(key);
    this.#kept.set(key, kept);
    this.#rows += kept.rows;
    for (const oldest of this.#kept.keys()) {
      if (this.#rows <= this.#maxRows) return;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#kept.delete(key)) this.#rows -= kept.rows;
  }
}
