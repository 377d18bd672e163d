/** The call log engine: `CallLog` is its interface, README.md lists its invariants. */
export type {
  BodySide,
  CallLog,
  CallLogSize,
  CallPatch,
  CallQuota,
  CallRecord,
  CallRow,
  CallSink,
  GatewayRef,
  StoredBody,
} from "./call-log.ts";
export type { CallScan, ScannedCall } from "./call-scan.ts";
export { CALL_COLUMNS } from "./columns.ts";
export type {
  CallField,
  CallFilter,
  CallOperator,
  CallOrder,
  CallRanges,
  CallSelection,
} from "./selection.ts";
export { isPageByTime, isPageOfAll } from "./quick-read.ts";
export { createCallTables } from "./postgres/create-call-tables.ts";
export { openPostgresCallLog } from "./open-postgres.ts";
export { SqliteCallLog } from "./sqlite-call-log.ts";
export {
  MAX_FIGURES,
  type UsageBy,
  type UsageByFigures,
  type UsageByQuery,
  type UsageDimension,
} from "./usage-by.ts";
export {
  addUsageFigures,
  LATENCY_BUCKETS_MS,
  USAGE_GROUPS,
  type UsageFigures,
  type UsageGroup,
} from "./usage.ts";
