/** Executes SQL statements: the database itself, or one of its transactions. */
import type { SqlQuery } from "./sql.ts";

export interface Queryable {
  all<Row>(query: SqlQuery): Promise<Row[]>;
  /** Returns the first row, or undefined. */
  get<Row>(query: SqlQuery): Promise<Row | undefined>;
  /** Executes a write; `changes` is the number of affected rows. */
  run(query: SqlQuery): Promise<{ changes: number }>;
}
