/**
 * The tables of a day file, generated from the tables of columns, and their versions.
 *
 * A gateway has a small number in each file, so that a row and its index entry do not repeat two names. The same table counts the rows of a
 * gateway, so that the total of a list needs no scan. Bodies have a table of their own: lists do not page through them. Usage is part of the
 * file because a row and the sums that count it are committed together.
 */
import { CALL_COLUMNS, type Column, listColumns, toSqlName, USAGE_SUMS, type UsageSum } from "./columns.ts";
import { LATENCY_BUCKETS_MS } from "./usage.ts";

export interface TableColumn {
  readonly sqlName: string;
  readonly definition: string;
  readonly since: number;
  /** SQL literal; the value in files of earlier versions. */
  readonly default: string;
}

const BUCKETS: readonly number[] = [...LATENCY_BUCKETS_MS.keys(), LATENCY_BUCKETS_MS.length];
export const LATENCY_COLUMNS: readonly string[] = BUCKETS.map((i) => `latency_${i}`);
export const FIRST_TOKEN_COLUMNS: readonly string[] = BUCKETS.map((i) => `first_token_${i}`);

const SUMS: [string, UsageSum][] = Object.entries(USAGE_SUMS);
/** Columns of `hourly` that are added up. */
export const SUM_COLUMNS: readonly string[] = [
  ...SUMS.map(([name]) => toSqlName(name)),
  ...LATENCY_COLUMNS,
  ...FIRST_TOKEN_COLUMNS,
];

const KEY_COLUMNS = {
  call: ["seq", "gateway", "counted"],
  hourly: ["hour", "gateway", "provider", "model"],
} as const;
const TABLES: Readonly<Record<"call" | "hourly", readonly TableColumn[]>> = {
  call: listColumns(CALL_COLUMNS).map((column) => toTableColumn(column.sqlName, column.sqlType, column)),
  hourly: [
    ...SUMS.map(([name, { kind, since = 1 }]) => ({
      sqlName: toSqlName(name),
      definition: `${kind.toUpperCase()} NOT NULL`,
      since,
      default: "0",
    })),
    ...[...LATENCY_COLUMNS, ...FIRST_TOKEN_COLUMNS].map((sqlName) => ({
      sqlName,
      definition: "INTEGER NOT NULL",
      since: 1,
      default: "0",
    })),
  ],
};
const TABLE_NAMES = ["call", "hourly"] as const;

/** Version of new day files: the version of the newest column. */
export const VERSION = Math.max(...TABLE_NAMES.flatMap((table) => TABLES[table].map(({ since }) => since)));

/** Columns of `call` for a read: `SELECT *` would depend on the file's history. */
export const CALL_SELECT_LIST = ["seq", ...TABLES.call.map(({ sqlName }) => sqlName)].join(", ");

export const CREATE_TABLES = `
CREATE TABLE gateway (
  key INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  gateway_id TEXT NOT NULL,
  rows INTEGER NOT NULL DEFAULT 0,
  UNIQUE (account_id, gateway_id)
);
CREATE TABLE call (
  seq INTEGER PRIMARY KEY,
  gateway INTEGER NOT NULL,
  -- 1 if the call is part of the totals.
  counted INTEGER NOT NULL,
  ${definitions("call")}
);
CREATE UNIQUE INDEX call_by_gateway ON call (gateway, id);
-- For the filters of the dashboard: few calls fail, or are answered from the cache.
CREATE INDEX call_failed ON call (seq) WHERE success = 0;
CREATE INDEX call_cached ON call (seq) WHERE cached = 1;
-- Empty unless totals are switched off.
CREATE INDEX call_uncounted ON call (seq) WHERE counted = 0;
CREATE TABLE body (
  -- Twice the call's seq, plus one for the response.
  place INTEGER PRIMARY KEY,
  is_zstd INTEGER NOT NULL,
  bytes BLOB NOT NULL
);
CREATE TABLE hourly (
  hour INTEGER NOT NULL,
  gateway INTEGER NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  ${definitions("hourly")},
  PRIMARY KEY (hour, gateway, provider, model)
) WITHOUT ROWID;
-- Totals by token and metadata (totals-blob.ts), of whole hours and again of whole days.
CREATE TABLE totals (
  gateway INTEGER NOT NULL,
  is_day INTEGER NOT NULL,
  time INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  bytes BLOB NOT NULL,
  UNIQUE (dimension, is_day, time, gateway)
);
-- What commits have added since the last merge.
CREATE TABLE totals_delta (
  key INTEGER PRIMARY KEY,
  gateway INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  bytes BLOB NOT NULL
);
PRAGMA user_version = ${VERSION};
`;

/** Adds the columns that a file of an earlier version lacks. SQLite changes the schema only, whatever the number of rows. */
export function migrationSql(fromVersion: number): string {
  const additions = TABLE_NAMES.flatMap((table) =>
    TABLES[table]
      .filter(({ since }) => since > fromVersion)
      .map((column) => `ALTER TABLE ${table} ADD COLUMN ${column.sqlName} ${withDefault(column)};`),
  );
  return [...additions, `PRAGMA user_version = ${VERSION};`].join("\n");
}

/**
 * Views that hide the tables of a file of an earlier version and have all columns, so that every read works on every version. SQLite looks up an
 * unqualified name among temporary objects first; they are not part of the file, so a read-only connection can create them.
 */
export function viewSql(fromVersion: number): string {
  return TABLE_NAMES.map((table) => {
    const columns = TABLES[table].map(({ sqlName, since, default: value }) =>
      since > fromVersion ? `${value} AS ${sqlName}` : sqlName,
    );
    return `CREATE TEMP VIEW ${table} AS SELECT ${[...KEY_COLUMNS[table], ...columns].join(", ")} FROM main.${table};`;
  }).join("\n");
}

function definitions(table: "call" | "hourly"): string {
  return TABLES[table].map((column) => `${column.sqlName} ${withDefault(column)}`).join(",\n  ");
}

/** Only an added column needs a default. */
function withDefault({ definition, since, default: value }: TableColumn): string {
  return since === 1 ? definition : `${definition} DEFAULT ${value}`;
}

function toTableColumn(sqlName: string, sqlType: string, column: Column): TableColumn {
  const { nullable, since = 1, default: value = null } = column;
  if (nullable !== true && since > 1 && value === null) {
    throw new Error(`the column ${sqlName} needs a default for files of earlier versions`);
  }
  return {
    sqlName,
    definition: nullable === true ? sqlType : `${sqlType} NOT NULL`,
    since,
    default: typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value ?? "NULL"),
  };
}
