/** A day file as the release with version 1 wrote it. The text must not change: installations have such files. */
import { DatabaseSync } from "node:sqlite";
import { ulidFloor } from "../../core/ulid.ts";
import { GATEWAY, HOUR } from "./call-log-fixture.ts";

const BUCKETS = ["latency", "first_token"]
  .flatMap((name) => Array.from({ length: 15 }, (_, i) => `${name}_${i} INTEGER NOT NULL`))
  .join(",\n  ");

export const VERSION_1_SCHEMA = `
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
  counted INTEGER NOT NULL,
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
  usage_state TEXT NOT NULL,
  is_cost_estimated INTEGER NOT NULL,
  metadata TEXT,
  event_id TEXT,
  user_agent TEXT NOT NULL,
  token_id TEXT,
  client_dialect TEXT,
  provider_dialect TEXT,
  dropped TEXT,
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
CREATE INDEX call_failed ON call (seq) WHERE success = 0;
CREATE INDEX call_cached ON call (seq) WHERE cached = 1;
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
  calls INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  cached INTEGER NOT NULL,
  tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  tokens_in_cached INTEGER NOT NULL,
  tokens_out_reasoning INTEGER NOT NULL,
  cost REAL NOT NULL,
  duration_ms REAL NOT NULL,
  ${BUCKETS},
  PRIMARY KEY (hour, gateway, provider, model)
) WITHOUT ROWID;
CREATE TABLE totals (
  gateway INTEGER NOT NULL,
  is_day INTEGER NOT NULL,
  time INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  bytes BLOB NOT NULL,
  UNIQUE (dimension, is_day, time, gateway)
);
CREATE TABLE totals_delta (
  key INTEGER PRIMARY KEY,
  gateway INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  bytes BLOB NOT NULL
);
PRAGMA user_version = 1;
`;

/** Writes a file with `count` calls of `GATEWAY`, one second apart, each with a response body; returns their ids. */
export function writeVersion1File(path: string, time: number, count: number): string[] {
  const file = new DatabaseSync(path);
  file.exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;");
  file.exec(VERSION_1_SCHEMA);
  file
    .prepare("INSERT INTO gateway (account_id, gateway_id, rows) VALUES (?, ?, ?)")
    .run(GATEWAY.accountId, GATEWAY.gatewayId, count);
  const ids = Array.from({ length: count }, (_, i) => ulidFloor(time + i * 1000));
  for (const [i, id] of ids.entries()) {
    file
      .prepare(
        `INSERT INTO call VALUES (?, 1, 1, ?, ?, 'openai', 'gpt-5-mini', 'chat/completions', 'POST', 'chat', 'application/json',
          'text/plain', 200, 1, 120.5, 80.25, 0, 0, 10, 5, 3, 2, 1, 0.5, 0, 'reported', 0, '{"user":"ada"}', NULL, 'test/1', NULL, NULL, NULL, NULL,
          100, 5,
          0, 1, 1, 1, NULL, NULL)`,
      )
      .run(i + 1, id, time + i * 1000);
    file.prepare("INSERT INTO body VALUES (?, 0, ?)").run((i + 1) * 2 + 1, Buffer.from(`body ${i}`));
  }
  const hour = Math.floor(time / HOUR) * HOUR;
  const buckets = Array.from({ length: 30 }, (_, i) => (i === 5 ? count : 0)).join(", ");
  file
    .prepare(
      `INSERT INTO hourly VALUES (?, 1, 'openai', 'gpt-5-mini', ?, 0, 0, ?, ?, ?, ?, ?, ?, ${buckets})`,
    )
    .run(hour, count, count * 10, count * 5, count * 3, count, count * 0.5, count * 120.5);
  file.close();
  return ids;
}

export function versionOfFile(path: string): number {
  const file = new DatabaseSync(path, { readOnly: true });
  try {
    return Number(file.prepare("PRAGMA user_version").get()?.["user_version"]);
  } finally {
    file.close();
  }
}

export function setVersionOfFile(path: string, version: number): void {
  const file = new DatabaseSync(path);
  file.exec(`PRAGMA user_version = ${version}`);
  file.close();
}
