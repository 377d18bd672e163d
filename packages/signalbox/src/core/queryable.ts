/** Runs SQL. The database and each of its transactions are one; code that only runs statements asks for no more. */
import type { SqlQuery } from "./sql.ts";

export interface Queryable {
  all<Row>(query: SqlQuery): Promise<Row[]>;
  /** The first row, or undefined. */
  get<Row>(query: SqlQuery): Promise<Row | undefined>;
  /** Executes a write; `changes` is the number of rows it touched. */
  run(query: SqlQuery): Promise<{ changes: number }>;
}
