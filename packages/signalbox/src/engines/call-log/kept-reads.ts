/**
 * What a reader has read from day files, kept until the file changes. A day that is over rarely changes, so the next page of a list reads today's file only.
 *
 * Invariants, in addition to those of `KeptValues`:
 * 1. The version of a file is SQLite's: a connection has another `data_version` when another connection has committed. It is read before the value.
 * 2. A file that is opened again is another file.
 */
import { rawSql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { KeptValues } from "./kept-values.ts";

const DATA_VERSION = rawSql("PRAGMA data_version");

export interface KeptFile {
  readonly connection: SqliteConnection;
  /** Distinguishes open files. */
  readonly number: number;
}

export class KeptReads {
  readonly #values: KeptValues;

  constructor(maxRows: number) {
    this.#values = new KeptValues(maxRows);
  }

  /** Rows of all values. */
  get rows(): number {
    return this.#values.rows;
  }

  /** The value of the query if it is kept and `isEnough`; else reads it, and keeps it if it has a number of rows. */
  read<T>(
    file: KeptFile,
    query: readonly unknown[],
    read: () => { readonly value: T; readonly rows: number | null },
    isEnough?: (value: T) => boolean,
  ): T {
    const key = `${file.number} ${JSON.stringify(query)}`;
    const version = file.connection.get<{ data_version: number }>(DATA_VERSION)?.data_version ?? Number.NaN;
    const known = this.#values.find(key, version, isEnough);
    if (known !== undefined) return known;
    const { value, rows } = read();
    if (rows !== null) this.#values.keep(key, version, value, rows);
    return value;
  }

  /** The file has been closed. */
  forget({ number }: Pick<KeptFile, "number">): void {
    this.#values.forget(`${number} `);
  }
}
