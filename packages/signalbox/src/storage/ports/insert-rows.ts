/** Inserts of many rows with few statements: statements of a few fixed numbers of rows are prepared once and reused. */
import type { Queryable } from "./database.ts";
import { SqlQuery, type SqlValue } from "./sql.ts";

/** Largest first; a hundred rows take nine statements. */
const ROWS_PER_STATEMENT = [64, 8, 1];

export class RowInserter {
  readonly #columns: number;
  readonly #statements: readonly { readonly rows: number; readonly parts: readonly string[] }[];

  /** `head` ends before the rows: `INSERT INTO t (a, b) VALUES `. */
  constructor(head: string, columns: number) {
    this.#columns = columns;
    this.#statements = ROWS_PER_STATEMENT.map((rows) => ({
      rows,
      parts: statementParts(head, columns, rows),
    }));
  }

  /** `values` are the rows' columns one after the other. */
  async insert(tx: Queryable, values: readonly SqlValue[]): Promise<void> {
    let at = 0;
    for (const { rows, parts } of this.#statements) {
      const count = this.#columns * rows;
      for (; at + count <= values.length; at += count) {
        await tx.run(new SqlQuery(parts, values.slice(at, at + count)));
      }
    }
  }
}

/** Frozen, so that adapters may keep the prepared statement by the array's identity. */
function statementParts(head: string, columns: number, rows: number): readonly string[] {
  const parts: string[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      parts.push(column > 0 ? ", " : row === 0 ? `${head}(` : "), (");
    }
  }
  parts.push(")");
  return Object.freeze(parts);
}
