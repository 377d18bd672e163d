/**
 * The tables of one day file.
 *
 * Gateways have a small number per file, so that a row and its index entry do not repeat two names; the same table counts the rows, so
 * that a list's total needs no scan. Bodies live apart: lists never page through them. Usage figures are part of the file, because
 * they must be committed together with the rows they count.
 */
import { LATENCY_BUCKETS_MS } from "./call-log.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";

const VERSION = 1;
/** As large as the log gets before SQLite copies it back. */
const MAX_IDLE_WAL_BYTES = 4 * 1024 * 1024;

export const LATENCY_COLUMNS: readonly string[] = [
  ...LATENCY_BUCKETS_MS.keys(),
  LATENCY_BUCKETS_MS.length,
].map((i) => `latency_${i}`);

const SCHEMA = `
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
  id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  path TEXT NOT NULL,
  method TEXT NOT NULL,
  request_type TEXT NOT NULL,
  request_content_type TEXT NOT NULL,
  response_content_type TEXT NOT NULL,
  status_code INTEGER NOT NULL,
  success INTEGER NOT NULL,
  duration_ms REAL NOT NULL,
  first_byte_ms REAL,
  cached INTEGER NOT NULL,
  step INTEGER NOT NULL,
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  tokens_in_cached INTEGER NOT NULL,
  tokens_in_cache_write INTEGER NOT NULL,
  tokens_out_reasoning INTEGER NOT NULL,
  cost REAL,
  is_custom_cost INTEGER NOT NULL,
  metadata TEXT,
  event_id TEXT,
  user_agent TEXT NOT NULL,
  token_id TEXT,
  request_bytes INTEGER NOT NULL,
  response_bytes INTEGER NOT NULL,
  has_request_body INTEGER NOT NULL,
  has_response_body INTEGER NOT NULL,
  request_body_complete INTEGER NOT NULL,
  response_body_complete INTEGER NOT NULL,
  feedback INTEGER,
  score REAL
);
CREATE UNIQUE INDEX call_by_gateway ON call (gateway, id);
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
  calls INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  tokens_in_cached INTEGER NOT NULL,
  tokens_out_reasoning INTEGER NOT NULL,
  cost REAL NOT NULL,
  duration_ms REAL NOT NULL,
  ${LATENCY_COLUMNS.map((name) => `${name} INTEGER NOT NULL`).join(",\n  ")},
  PRIMARY KEY (hour, gateway, provider, model)
) WITHOUT ROWID;
PRAGMA user_version = ${VERSION};
`;

/** For the writer. Every commit is synced: it happens a few times a second, on a thread where nobody waits for it. */
export function openDayForWriting(path: string): SqliteConnection {
  const connection = SqliteConnection.open(path);
  try {
    // First of all, because only an empty file takes it: what is deleted can then be given back to the disk a piece at a time.
    connection.exec("PRAGMA auto_vacuum = INCREMENTAL;");
    connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;");
    // The log beside a day file must not stay as large as its largest batch of bodies.
    connection.exec(`PRAGMA journal_size_limit = ${MAX_IDLE_WAL_BYTES};`);
    const version = versionOf(connection);
    if (version === 0) connection.exec(`BEGIN IMMEDIATE; ${SCHEMA} COMMIT;`);
    else if (version !== VERSION) throw new Error(`${path} was written by another version (${version})`);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** For readers; null when the writer has just created the file and its tables are not there yet. */
export function openDayForReading(path: string): SqliteConnection | null {
  const connection = SqliteConnection.open(path, { readOnly: true });
  if (versionOf(connection) === VERSION) return connection;
  connection.close();
  return null;
}

function versionOf(connection: SqliteConnection): number {
  return connection.get<{ user_version: number }>(rawSql("PRAGMA user_version"))?.user_version ?? 0;
}

/** The gateway's number in this file; undefined when the file has nothing of it. */
export function findGatewayKey(
  connection: SqliteConnection,
  accountId: string,
  gatewayId: string,
): { key: number; rows: number } | undefined {
  return connection.get(
    sql`SELECT key, rows FROM gateway WHERE account_id = ${accountId} AND gateway_id = ${gatewayId}`,
  );
}
