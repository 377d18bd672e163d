/**
 * One statement for many rows: `INSERT … VALUES (…), (…)` or `… IN (VALUES (…), (…))`. On PostgreSQL each statement is a round trip, so a
 * statement a row makes a batch wait for the network.
 *
 * Rows are cut into pieces of a few fixed sizes. Each size is one constant text that both engines prepare once; a text for every number of
 * rows would push all other statements out of the cache of prepared ones.
 */
import type { Queryable } from "./queryable.ts";
import { SqlQuery, type SqlValue } from "./sql.ts";

/** Largest first. A hundred rows of twenty columns stay far below the engines' limits of bound values (32,766 and 65,535). */
const SIZES = [100, 25, 5, 1] as const;

export class RowsStatement {
  readonly #columns: number;
  readonly #statements: readonly { readonly size: number; readonly text: readonly string[] }[];

  /** `before` and `after` are constants of the code; the rows' values stand between them. */
  constructor(before: string, columns: number, after = "") {
    this.#columns = columns;
    this.#statements = SIZES.map((size) => ({ size, text: textFor(before, columns, after, size) }));
  }

  /** The fewest statements for these rows, in their order; `values` are their columns one after the other. */
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

  /** Runs them; returns how many rows they changed. */
  async run(tx: Queryable, values: readonly SqlValue[]): Promise<number> {
    let changes = 0;
    for (const query of this.queries(values)) changes += (await tx.run(query)).changes;
    return changes;
  }
}

/** The literal parts around the values of `size` rows. Frozen, as a template's are: adapters keep prepared statements by identity. */
function textFor(before: string, columns: number, after: string, size: number): readonly string[] {
  const parts: string[] = [];
  for (let row = 0; row < size; row++) {
    parts.push(row === 0 ? `${before}(` : "), (");
    for (let column = 1; column < columns; column++) parts.push(", ");
  }
  parts.push(`)${after}`);
  return Object.freeze(parts);
}
