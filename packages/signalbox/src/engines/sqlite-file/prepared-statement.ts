/**
 * A compiled statement whose integers are exact: those that a JavaScript number holds come as numbers, all others as bigints.
 *
 * node:sqlite reads all integers as numbers, and fails on one that does not fit, or all as bigints, which costs a tenth to a half more and has
 * to be undone. Nearly no statement ever meets an integer beyond 2^53, so a statement reads numbers until it has met one, and is then run again.
 * A statement that writes cannot be run again: if it returns rows, it must read exactly from the beginning.
 */
import type { StatementSync } from "node:sqlite";
import type { SqlValue } from "../../core/sql.ts";

type Row = Record<string, SqlValue>;

export class PreparedStatement {
  readonly #statement: StatementSync;
  #isExact = false;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  /** The text this statement covers, when more text follows it. */
  get text(): string {
    return this.#statement.sourceSQL;
  }

  /** For a statement that writes, before it is run for the first time. */
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

  /** Row by row, so that whoever has enough can stop. */
  *iterate(values: readonly SqlValue[]): Generator<Row> {
    this.#readExactly();
    for (const row of this.#statement.iterate(...values)) yield narrow(row);
  }

  #readExactly(): void {
    this.#statement.setReadBigInts(true);
    this.#isExact = true;
  }
}

/** In place: the row is nobody else's yet. */
function narrow(row: Row): Row {
  for (const name in row) {
    const value = row[name];
    if (typeof value === "bigint" && value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER)
      row[name] = Number(value);
  }
  return row;
}
