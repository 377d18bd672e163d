/** The database that the runtime drives. Statements are synchronous; `begin`, `commit` and `rollback` do not nest. */
import type { SqlQuery } from "../../core/sql.ts";

export interface TurnDatabase {
  get<Row>(query: SqlQuery): Row | undefined;
  run(query: SqlQuery): unknown;
  begin(): void;
  /** Does not make anything durable. */
  commit(): void;
  /** No error when no transaction is open. */
  rollback(): void;
  /** Makes all commits survive the end of the process. Null if they do when the call returns; otherwise they do when the promise resolves. */
  flush(): Promise<void> | null;
  /** Increases whenever a statement may have added or removed a table or a constraint. */
  readonly tableChanges: number;
}
