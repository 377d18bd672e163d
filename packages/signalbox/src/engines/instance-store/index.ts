/** Many small SQLite databases, one for each instance; `instance-store.ts` is the interface. See README.md. */
export {
  type BaseSchema,
  type GuardedStatement,
  type InstanceDatabase,
  type InstanceStore,
  type LocalInstanceStore,
  type QueryResult,
  SqlError,
} from "./instance-store.ts";
export type { RawRows, RowLimits } from "../sqlite-file/index.ts";
export { openInstanceStore } from "./open-instance-store.ts";
export { openSharedStore } from "./open-shared-store.ts";
export { createSharedTables } from "./shared/tables.ts";
export type { HistorySize } from "./shared/history-size.ts";
export {
  type Fence,
  InstanceElsewhereError,
  InstanceFencedError,
  type Nodes,
  type Ownership,
  type OwnershipFigures,
  type TakeOver,
  type SharedInstanceStore,
} from "./shared/ownership.ts";
