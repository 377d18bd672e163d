/**
 * A statement with many rows: `INSERT … VALUES (…), (…)` or `… IN (VALUES (…), (…))`. Each statement is a round trip to PostgreSQL, so one
 * statement per row would be slow.
 *
 * Rows are split into groups of a few fixed sizes. Each size has a constant text that both databases prepare once; a text for every number of
 * rows would displace all other prepared statements.
 */
import type { Queryable } from "./queryable.ts";
import { SqlQuery, type SqlValue } from "./sql.ts";

/** Descending. A hundred rows of twenty columns are far below the maximum numbers of parameters (SQLite 32,766, PostgreSQL 65,535). */
const SIZES = [100, 50, 25, 10, 5, 2, 1] as const;

export class RowsStatement {
  readonly #columns: number;
  readonly #statements: readonly { readonly size: number; readonly text: readonly string[] }[];

  /** `before` and `after` are constant SQL around the rows. */
  constructor(before: string, columns: number, after = "") {
    this.#columns = columns;
    this.#statements = SIZES.map((size) => ({ size, text: textFor(before, columns, after, size) }));
  }

  /** Returns the statements for the rows, in order. `values` contains the columns of all rows. */
  queries(values: readonly SqlValue[]): SqlQuery[] {
    const queries: SqlQuery[] = [];
    let at = 0;
    for (const { size, text } of this.#statements) {
      const count = this.#columns * size;
      for (; at + count <= values.length; at += count) {
        queries.push(new SqlQuery(text, values.slice(at, at + count)));
      }
    }
    return queries;
  }

  /** Executes the statements and returns the number of changed rows. */
  async run(tx: Queryable, values: readonly SqlValue[]): Promise<number> {
    let changes = 0;
    for (const query of this.queries(values)) changes += (await tx.run(query)).changes;
    return changes;
  }
}

/** Returns the text around the values of `size` rows. Frozen like a template's text: adapters cache prepared statements by identity. */
function textFor(before: string, columns: number, after: string, size: number): readonly string[] {
  const parts: string[] = [];
  for (let row = 0; row < size; row++) {
    parts.push(row === 0 ? `${before}(` : "), (");
    for (let column = 1; column < columns; column++) parts.push(", ");
  }
  parts.push(`)${after}`);
  return Object.freeze(parts);
}
