/**
 * The tables of the call log in PostgreSQL, generated from the tables of columns.
 *
 * `call_log` and `call_log_body` are partitioned by the id, one partition per UTC day: the time is the beginning of the id. Everything else is
 * small. Columns are only added, with a default, so nodes of two releases can write side by side.
 */
import type { Queryable } from "../../../core/queryable.ts";
import { rawSql, sql, type SqlQuery } from "../../../core/sql.ts";
import { CALL_COLUMNS, type Column, listColumns, toSqlName, USAGE_SUMS, type UsageSum } from "../columns.ts";
import { FIRST_TOKEN_COLUMNS, LATENCY_COLUMNS } from "../day-schema.ts";

export interface LabelledBlob {
  readonly label: string;
  readonly bytes: Uint8Array;
}

/** The part of the control plane's database that the log uses. */
export interface CallDatabase extends Queryable {
  /** Like `all`, and quicker if `bytes` is large. Default: `all`. */
  readBlobs?(query: SqlQuery): Promise<LabelledBlob[]>;
  transaction<T>(
    work: (tx: Queryable) => Promise<T>,
    options: { readonly scope: string; readonly isConcurrent?: boolean },
  ): Promise<T>;
}

/** Byte order and case-insensitivity of ASCII letters only, as in SQLite. */
const TEXT = 'TEXT COLLATE "C"';

const TYPES: Readonly<Record<Column["kind"], string>> = {
  id: TEXT,
  text: TEXT,
  json: TEXT,
  integer: "BIGINT",
  time: "BIGINT",
  flag: "SMALLINT",
  real: "DOUBLE PRECISION",
  ms: "DOUBLE PRECISION",
};

interface AddedColumn {
  readonly table: string;
  readonly sqlName: string;
  readonly definition: string;
  readonly since: number;
}

const SUMS: [string, UsageSum][] = Object.entries(USAGE_SUMS);

const COLUMNS: readonly AddedColumn[] = [
  ...listColumns(CALL_COLUMNS).map((column) => ({
    table: "call_log",
    sqlName: column.sqlName,
    definition: `${TYPES[column.kind]}${column.nullable === true ? "" : " NOT NULL"}${defaultOf(column)}`,
    since: column.since ?? 1,
  })),
  ...SUMS.map(([name, { kind, since = 1 }]) => ({
    table: "call_log_hour",
    sqlName: toSqlName(name),
    definition: `${TYPES[kind]} NOT NULL DEFAULT 0`,
    since,
  })),
  ...FIRST_TOKEN_COLUMNS.map((sqlName) => ({
    table: "call_log_hour",
    sqlName,
    definition: "BIGINT NOT NULL DEFAULT 0",
    since: 1,
  })),
];

/** Version of the tables: the version of the newest column. */
const VERSION = Math.max(...COLUMNS.map(({ since }) => since));

/** Rows of `call_log_hour` are updated with every commit: free space in each page keeps the new version of a row beside the old one. */
const UPDATED = "WITH (fillfactor = 50)";

/**
 * Large values that are replaced every few minutes. By default a vacuum would begin when a fifth of the table is dead: with the totals of many users
 * that is more than a gigabyte.
 */
const REPLACED = "WITH (autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_vacuum_scale_factor = 0.01)";

const CREATE = [
  `CREATE TABLE IF NOT EXISTS call_log_schema (id INTEGER PRIMARY KEY, version INTEGER NOT NULL)`,
  // The number of a gateway, so that a row and its index entry do not repeat two names. Rows are never removed: nodes keep the numbers.
  `CREATE TABLE IF NOT EXISTS call_log_gateway
    (key INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account_id ${TEXT} NOT NULL, gateway_id ${TEXT} NOT NULL,
     UNIQUE (account_id, gateway_id))`,
  `CREATE TABLE IF NOT EXISTS call_log
    (gateway INTEGER NOT NULL, counted SMALLINT NOT NULL, ${definitions("call_log")}, PRIMARY KEY (gateway, id)) PARTITION BY RANGE (id)`,
  // `counted`: 1 if the call is part of the totals. The index is empty unless totals are switched off.
  `CREATE INDEX IF NOT EXISTS call_log_uncounted ON call_log (id) WHERE counted = 0`,
  // Bodies are compressed before they are sent. `side`: 0 request, 1 response.
  `CREATE TABLE IF NOT EXISTS call_log_body
    (id ${TEXT} NOT NULL, side SMALLINT NOT NULL, is_zstd BOOLEAN NOT NULL, bytes BYTEA NOT NULL, PRIMARY KEY (id, side))
    PARTITION BY RANGE (id)`,
  `ALTER TABLE call_log_body ALTER COLUMN bytes SET STORAGE EXTERNAL`,
  `CREATE TABLE IF NOT EXISTS call_log_hour
    (gateway INTEGER NOT NULL, hour BIGINT NOT NULL, provider ${TEXT} NOT NULL, model ${TEXT} NOT NULL, ${definitions("call_log_hour")},
     ${LATENCY_COLUMNS.map((name) => `${name} BIGINT NOT NULL DEFAULT 0`).join(", ")},
     PRIMARY KEY (gateway, hour, provider, model)) ${UPDATED}`,
  // Totals by token and metadata (totals-blob.ts), of whole hours and again of whole days.
  `CREATE TABLE IF NOT EXISTS call_log_totals
    (gateway INTEGER NOT NULL, is_day BOOLEAN NOT NULL, time BIGINT NOT NULL, dimension ${TEXT} NOT NULL, bytes BYTEA NOT NULL,
     PRIMARY KEY (dimension, is_day, time, gateway)) ${REPLACED}`,
  // Changed every minute, and as compact as it can be.
  `ALTER TABLE call_log_totals ALTER COLUMN bytes SET STORAGE EXTERNAL`,
  // What commits have added since the last merge.
  `CREATE TABLE IF NOT EXISTS call_log_totals_delta
    (key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, gateway INTEGER NOT NULL, hour BIGINT NOT NULL, dimension ${TEXT} NOT NULL,
     bytes BYTEA NOT NULL)`,
  // Rows of a gateway on a day, for totals and quotas without a scan.
  `CREATE TABLE IF NOT EXISTS call_log_count
    (gateway INTEGER NOT NULL, day BIGINT NOT NULL, rows BIGINT NOT NULL, PRIMARY KEY (gateway, day)) ${UPDATED}`,
  // Size of a day, for the size limit.
  `CREATE TABLE IF NOT EXISTS call_log_day
    (day BIGINT PRIMARY KEY, rows BIGINT NOT NULL, row_bytes BIGINT NOT NULL, bodies BIGINT NOT NULL, body_bytes BIGINT NOT NULL) ${UPDATED}`,
  // How far the queue of each process was written: after a lost connection no row is written or counted twice.
  `CREATE TABLE IF NOT EXISTS call_log_writer
    (writer TEXT PRIMARY KEY, position BIGINT NOT NULL, seen_at TIMESTAMPTZ NOT NULL) ${UPDATED}`,
].map(rawSql);

/** Creates the tables, or adds the columns of this release. A start that finds them takes no lock. */
export async function ensureTables(database: CallDatabase): Promise<void> {
  if ((await versionOf(database)) >= VERSION) return;
  await database.transaction(
    async (tx) => {
      for (const statement of CREATE) await tx.run(statement);
      const found = await versionOf(tx);
      // New tables have all columns.
      const missing = found === 0 ? [] : COLUMNS.filter(({ since }) => since > found);
      for (const { table, sqlName, definition } of missing) {
        await tx.run(rawSql(`ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${sqlName} ${definition}`));
      }
      await tx.run(
        sql`INSERT INTO call_log_schema (id, version) VALUES (1, ${VERSION})
            ON CONFLICT (id) DO UPDATE SET version = greatest(call_log_schema.version, excluded.version)`,
      );
    },
    { scope: "call_log_schema" },
  );
}

/** 0 if there are no tables. */
async function versionOf(queryable: Queryable): Promise<number> {
  const table = await queryable.get(
    sql`SELECT 1 FROM pg_class WHERE relname = 'call_log_schema' AND pg_table_is_visible(oid)`,
  );
  if (table === undefined) return 0;
  const row = await queryable.get<{ version: number }>(sql`SELECT version FROM call_log_schema`);
  return row?.version ?? 0;
}

function definitions(table: string): string {
  return COLUMNS.filter((column) => column.table === table)
    .map(({ sqlName, definition }) => `${sqlName} ${definition}`)
    .join(", ");
}

function defaultOf({ nullable, since = 1, default: value }: Column): string {
  if (value !== undefined)
    return ` DEFAULT ${typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value)}`;
  if (since > 1 && nullable !== true) throw new Error("a column that is added needs a default");
  return "";
}
