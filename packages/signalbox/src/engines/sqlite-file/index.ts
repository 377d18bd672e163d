/** One SQLite file: `SqliteConnection` runs statements, `WalSync` makes its commits durable. See README.md. */
export { type Authorizer, SQLITE_ACTIONS, SqliteConnection } from "./connection.ts";
export { copySqliteFile } from "./copy-file.ts";
export { keepPrivate } from "./keep-private.ts";
export type { PreparedStatement, RawRows, RowLimits } from "./prepared-statement.ts";
export { StatementCache, textOf } from "./prepared-statement.ts";
export { explainFailure, isBusy, isConstraint, isFullDisk, unavailable } from "./storage-failure.ts";
export { WalSync } from "./wal-sync.ts";
