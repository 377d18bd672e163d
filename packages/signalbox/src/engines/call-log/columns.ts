/**
 * Every column of a call and every sum of the hourly usage, each listed once.
 *
 * The tables of a day file, the layout of a row in shared memory, the insert statement, the reads, the filters and the types `CallRecord` and
 * `CallRow` are generated from these two tables. To add a column, add an entry whose `since` is one above the largest `since` in this file; that
 * number becomes the version of new day files, and earlier files read the column as null, or as its `default`.
 *
 * The SQL name of a column is its name in snake case.
 * See docs/decisions/0104.
 */

export interface Column {
  /**
   * `id`: a ULID. `json`: text that is valid JSON. `time`: milliseconds since the epoch. `ms`: a duration in milliseconds, rounded to hundredths
   * so that filters compare with the value that is shown. `flag`: a boolean, stored as 0 or 1.
   */
  readonly kind: "id" | "text" | "json" | "integer" | "time" | "real" | "ms" | "flag";
  readonly nullable?: true;
  /** Characters that are stored; callers choose the text, and no real one is as long. */
  readonly maxLength?: number;
  readonly filterable?: true;
  readonly sortable?: true;
  /** Where the value comes from if not from the `CallRecord`: the record's bodies, or a later edit. */
  readonly from?: "bodies" | "edit";
  /** Version of the day file that introduced the column. Default 1. */
  readonly since?: number;
  /** Value in files of earlier versions; required if the column is neither nullable nor of version 1. */
  readonly default?: string | number;
}

export const CALL_COLUMNS = {
  /** Also the order of rows. */
  id: { kind: "id", filterable: true },
  /** When the request's headers had arrived. */
  createdAt: { kind: "time", filterable: true, sortable: true },
  provider: { kind: "text", filterable: true, sortable: true },
  model: { kind: "text", maxLength: 256, filterable: true, sortable: true },
  /** Path after the provider segment, without the query. */
  path: { kind: "text", maxLength: 2048, filterable: true },
  method: { kind: "text" },
  /** `chat`, `responses`, `messages`, `embeddings`, …; empty if unknown. */
  requestType: { kind: "text", filterable: true, sortable: true },
  requestContentType: { kind: "text", filterable: true },
  responseContentType: { kind: "text", filterable: true },
  statusCode: { kind: "integer", filterable: true },
  success: { kind: "flag", filterable: true, sortable: true },
  /** To the end of the response. */
  durationMs: { kind: "ms", filterable: true, sortable: true },
  /** To the first byte of the response; null if there was none. */
  firstByteMs: { kind: "ms", nullable: true },
  cached: { kind: "flag", filterable: true, sortable: true },
  /** Index of the fallback step that answered. */
  step: { kind: "integer" },
  /** Total, including the two counts below that begin with `tokensIn`. */
  tokensIn: { kind: "integer", filterable: true, sortable: true },
  /** Total, including `tokensOutReasoning`. */
  tokensOut: { kind: "integer", filterable: true, sortable: true },
  /** Part of `tokensIn` that was read from the provider's prompt cache. */
  tokensInCached: { kind: "integer" },
  /** Part of `tokensIn` that was written to the provider's prompt cache. */
  tokensInCacheWrite: { kind: "integer" },
  /** Part of `tokensOut` that was spent on reasoning. */
  tokensOutReasoning: { kind: "integer" },
  /** US dollars; null if the model's price is unknown. */
  cost: { kind: "real", nullable: true, filterable: true, sortable: true },
  isCustomCost: { kind: "flag" },
  /** Where the token counts come from: `reported`, `estimated`, `unknown` or `none`. */
  usageState: { kind: "text", filterable: true },
  /** The cost comes from estimated token counts. */
  isCostEstimated: { kind: "flag" },
  /** A flat JSON object, serialised. Text that is not JSON is stored as null: a single such row would make every filter on metadata fail. */
  metadata: { kind: "json", nullable: true },
  eventId: { kind: "text", nullable: true, maxLength: 256, filterable: true },
  userAgent: { kind: "text", maxLength: 512, filterable: true },
  /** Token that authorised the call; null if the gateway requires none. */
  tokenId: { kind: "text", nullable: true },
  /** Dialect that the client spoke at a unified door, and the dialect of the provider: `chat`, `messages`, `responses`, `gemini`. */
  clientDialect: { kind: "text", nullable: true, filterable: true },
  providerDialect: { kind: "text", nullable: true, filterable: true },
  /** Fields of the request that the provider could not express and the caller allowed to leave out, separated by commas. */
  dropped: { kind: "text", nullable: true, maxLength: 1024 },
  /** The strictest action that a guardrail took: `block`, `mask` or `flag`. */
  guardrailAction: { kind: "text", nullable: true, filterable: true, since: 2 },
  /** The strictest action of the setting `dlp`: `BLOCK` or `FLAG`. */
  dlpAction: { kind: "text", nullable: true, filterable: true, since: 2 },
  /** What the guardrails found: rule, place and action, never the text. */
  guardrails: { kind: "json", nullable: true, since: 2 },
  /** Attempts upstream with their times, if there was more than one or it began late. */
  attempts: { kind: "json", nullable: true, since: 3 },
  requestBytes: { kind: "integer" },
  responseBytes: { kind: "integer" },
  /** True also after the size limit has removed the body. */
  hasRequestBody: { kind: "flag", from: "bodies" },
  hasResponseBody: { kind: "flag", from: "bodies" },
  /** False if the body was longer than the part that was kept. */
  requestBodyComplete: { kind: "flag" },
  responseBodyComplete: { kind: "flag" },
  /** -1 or 1. */
  feedback: { kind: "integer", nullable: true, from: "edit", filterable: true, sortable: true },
  score: { kind: "real", nullable: true, from: "edit" },
} as const satisfies Readonly<Record<string, Column>>;

/** A sum over the calls of one hour, gateway, provider and model. A new sum is 0 in files of earlier versions. */
export interface UsageSum {
  readonly kind: "integer" | "real";
  /** What one call adds. */
  readonly of: (call: NumberReader) => number;
  /** The same as an SQL expression over the columns of a call. */
  readonly sql: string;
  readonly since?: number;
}

export interface NumberReader {
  /** Null reads as 0, a flag as 0 or 1. */
  number(name: NumberColumn): number;
}

export const USAGE_SUMS = {
  calls: { kind: "integer", of: () => 1, sql: "1" },
  errors: { kind: "integer", of: (call) => 1 - call.number("success"), sql: "1 - success" },
  cached: { kind: "integer", of: (call) => call.number("cached"), sql: "cached" },
  tokensIn: { kind: "integer", of: (call) => call.number("tokensIn"), sql: "tokens_in" },
  tokensOut: { kind: "integer", of: (call) => call.number("tokensOut"), sql: "tokens_out" },
  tokensInCached: { kind: "integer", of: (call) => call.number("tokensInCached"), sql: "tokens_in_cached" },
  tokensOutReasoning: {
    kind: "integer",
    of: (call) => call.number("tokensOutReasoning"),
    sql: "tokens_out_reasoning",
  },
  /** Sum of the known costs. */
  cost: { kind: "real", of: (call) => call.number("cost"), sql: "coalesce(cost, 0)" },
  durationMs: { kind: "real", of: (call) => call.number("durationMs"), sql: "duration_ms" },
} as const satisfies Readonly<Record<string, UsageSum>>;

type Columns = typeof CALL_COLUMNS;
type Value<C extends Column> =
  | (C["kind"] extends "flag"
      ? boolean
      : C["kind"] extends "integer" | "time" | "real" | "ms"
        ? number
        : string)
  | (C extends { readonly nullable: true } ? null : never);
type NamesWith<Property> = {
  [Name in keyof Columns]: Columns[Name] extends Property ? Name : never;
}[keyof Columns];

export type ColumnName = keyof Columns;
export type RecordColumn = Exclude<ColumnName, NamesWith<{ readonly from: "bodies" | "edit" }>>;
export type FilterableColumn = NamesWith<{ readonly filterable: true }>;
export type SortableColumn = NamesWith<{ readonly sortable: true }>;
export type NumberColumn = RecordColumn &
  NamesWith<{ readonly kind: "integer" | "time" | "real" | "ms" | "flag" }>;
/** The values of all columns of a call. */
export type CallValues = { readonly [Name in keyof Columns]: Value<Columns[Name]> };
export type UsageSums = { readonly [Name in keyof typeof USAGE_SUMS]: number };

export type CallColumn = Column & {
  readonly name: ColumnName;
  readonly sqlName: string;
  readonly sqlType: "TEXT" | "INTEGER" | "REAL";
};

const SQL_TYPES = {
  id: "TEXT",
  text: "TEXT",
  json: "TEXT",
  integer: "INTEGER",
  time: "INTEGER",
  flag: "INTEGER",
  real: "REAL",
  ms: "REAL",
} as const;

/** The entries of `CALL_COLUMNS` in order, with their names and types in SQL. */
export function listColumns(columns: Readonly<Record<string, Column>>): CallColumn[] {
  return Object.entries(columns).map(([name, column]) => ({
    ...column,
    name: name as ColumnName,
    sqlName: toSqlName(name),
    sqlType: SQL_TYPES[column.kind],
  }));
}

export function toSqlName(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
