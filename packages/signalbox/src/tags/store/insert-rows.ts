/** Inserts of many rows with few statements: one statement of a fixed number of rows is prepared once and reused. */
import type { Queryable } from "../../storage/ports/database.ts";
import { SqlQuery, type SqlValue } from "../../storage/ports/sql.ts";

const ROWS_PER_STATEMENT = 64;

export class RowInserter {
  readonly #columns: number;
  readonly #many: readonly string[];
  readonly #one: readonly string[];

  /** `head` ends before the rows: `INSERT INTO t (a, b) VALUES `. */
  constructor(head: string, columns: number) {
    this.#columns = columns;
    this.#many = statementParts(head, columns, ROWS_PER_STATEMENT);
    this.#one = statementParts(head, columns, 1);
  }

  /** `values` are the rows' columns one after the other. */
  async insert(tx: Queryable, values: readonly SqlValue[]): Promise<void> {
    const many = this.#columns * ROWS_PER_STATEMENT;
    let at = 0;
    for (; at + many <= values.length; at += many) {
      await tx.run(new SqlQuery(this.#many, values.slice(at, at + many)));
    }
    for (; at < values.length; at += this.#columns) {
      await tx.run(new SqlQuery(this.#one, values.slice(at, at + this.#columns)));
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
