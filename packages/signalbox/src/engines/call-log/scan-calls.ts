/** Scans day files. The cursor of a scan is a day and the number of a row in its file. */
import { zstdDecompressSync } from "node:zlib";
import { joinSql, rawSql, sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { answerPreview, bodyText, promptPreview } from "./body-text.ts";
import type { BodySide, StoredBody } from "./call-log.ts";
import type { CallScan, ScannedCall } from "./call-scan.ts";
import { CALL_SELECT_LIST } from "./day-schema.ts";
import type { CallSelection } from "./selection.ts";
import { requiresValue } from "./selection-sql.ts";
import { SQLITE_SELECTION } from "./sqlite-selection.ts";
import { type StoredRow, toCallRow } from "./stored-row.ts";

/** Rows that one statement returns. */
const PART_ROWS = 100;
/** Rows that one statement looks at, whether they match or not: at most some ten milliseconds, with a search in long metadata. */
const WINDOW_ROWS = 2000;
/** How many times as many rows a statement spans that reads an index of few rows. */
const INDEXED_FACTOR = 10;
/** Time of one slice, so that other reads wait no longer. It is exceeded by one statement at most. */
const SLICE_MS = 200;
/** Bodies of one slice; they are copied between threads. */
const SLICE_BYTES = 4 * 1024 * 1024;

const COLUMNS = rawSql(
  CALL_SELECT_LIST.split(", ")
    .map((name) => `call.${name}`)
    .join(", "),
);

/** The budget of one slice, and what it has found. */
export class ScanSlice {
  readonly calls: ScannedCall[] = [];
  scanned = 0;
  #bytes = 0;
  readonly #endsAt = performance.now() + SLICE_MS;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isFull(): boolean {
    return (
      this.calls.length >= this.#limit || this.#bytes >= SLICE_BYTES || performance.now() >= this.#endsAt
    );
  }

  add(call: ScannedCall): void {
    this.calls.push(call);
    this.#bytes += (call.request?.bytes.length ?? 0) + (call.response?.bytes.length ?? 0);
  }
}

type ScanOptions = Pick<CallScan, "text" | "previewLength" | "withBodies">;

export interface Scanned {
  /** Number of the last row that was looked at; null if there was none. */
  readonly last: number | null;
  /** The file has no more rows; otherwise the slice is full. */
  readonly isEnd: boolean;
}

/** Reads rows of one file after `after`, in the order of their numbers, until the slice is full. */
export function scanDay(
  connection: SqliteConnection,
  scan: CallScan,
  after: number | null,
  slice: ScanSlice,
): Scanned {
  const isOwn = [sql`gateway.account_id = ${scan.accountId}`];
  if (scan.gatewayIds !== null) isOwn.push(sql`gateway.gateway_id IN (${sqlList(scan.gatewayIds)})`);
  const own = joinSql(isOwn, " AND ");
  const { rows } = connection.get<{ rows: number | null }>(
    sql`SELECT sum(rows) AS rows FROM gateway WHERE ${own}`,
  ) ?? { rows: 0 };
  // A file without calls of the gateways is not read.
  if (rows === null || rows === 0) return { last: null, isEnd: true };
  const conditions = SQLITE_SELECTION.conditions(scan.selection);
  const tables = tablesOf(connection, scan.selection, rows);
  const where = joinSql([own, tables.condition, ...conditions], " AND ");
  return readRows(connection, { own, where, tables }, scan, scan.direction, after, slice);
}

/** Reads the rows of all accounts that were added after `after`, oldest first. */
export function scanStored(
  connection: SqliteConnection,
  after: number,
  options: ScanOptions,
  slice: ScanSlice,
): Scanned {
  const all = rawSql("1 = 1");
  return readRows(connection, { own: all, where: all, tables: IN_ORDER }, options, "asc", after, slice);
}

interface Rows {
  /** The rows that may be looked at. */
  readonly own: SqlQuery;
  /** Those of them that match. */
  readonly where: SqlQuery;
  readonly tables: Tables;
}

/** How a statement finds the rows. */
interface Tables {
  /** Of those that may match. */
  readonly from: SqlQuery;
  /** Of all rows of the gateways. */
  readonly all: SqlQuery;
  /** The row's number as the statement compares it. */
  readonly seq: SqlQuery;
  /** What the index requires. */
  readonly condition: SqlQuery;
  /** Numbers that one statement spans. */
  readonly windowRows: number;
}

const NONE = rawSql("1 = 1");
const SEQ = rawSql("call.seq");
/** One row after the other. `CROSS JOIN` keeps the order of the tables: with the gateway first, every part would sort the whole file. */
const ROWS = rawSql("call CROSS JOIN gateway ON gateway.key = call.gateway");
const IN_ORDER: Tables = {
  from: ROWS,
  all: ROWS,
  seq: SEQ,
  condition: NONE,
  windowRows: WINDOW_ROWS,
};
/** All rows of gateways that have few, by their index: among those of others they may be far apart. The sign keeps SQLite from reading by numbers. */
const ROWS_OF_GATEWAY = rawSql("gateway CROSS JOIN call ON call.gateway = gateway.key");
const OF_GATEWAY: Tables = {
  from: ROWS_OF_GATEWAY,
  all: ROWS_OF_GATEWAY,
  seq: rawSql("+call.seq"),
  condition: NONE,
  windowRows: Number.MAX_SAFE_INTEGER,
};
/** Most calls neither fail nor come from the cache, so a statement spans more of them. */
const FAILED: Tables = {
  from: rawSql("call INDEXED BY call_failed CROSS JOIN gateway ON gateway.key = call.gateway"),
  all: ROWS,
  seq: SEQ,
  condition: rawSql("success = 0"),
  windowRows: WINDOW_ROWS * INDEXED_FACTOR,
};
const CACHED: Tables = {
  ...FAILED,
  from: rawSql("call INDEXED BY call_cached CROSS JOIN gateway ON gateway.key = call.gateway"),
  condition: rawSql("cached = 1"),
};

/** `rows`: those of the gateways in the file. */
function tablesOf(connection: SqliteConnection, selection: CallSelection, rows: number): Tables {
  if (rows <= WINDOW_ROWS) return OF_GATEWAY;
  const tables = requiresValue(selection, "success", 0)
    ? FAILED
    : requiresValue(selection, "cached", 1)
      ? CACHED
      : IN_ORDER;
  // A file of an earlier version is read through a view, for which no index can be named.
  return connection.get(sql`SELECT 1 FROM temp.sqlite_master WHERE name = 'call'`) === undefined
    ? tables
    : IN_ORDER;
}

function readRows(
  connection: SqliteConnection,
  { own, where, tables }: Rows,
  options: ScanOptions,
  direction: "asc" | "desc",
  after: number | null,
  slice: ScanSlice,
): Scanned {
  const { from, seq } = tables;
  const isDown = direction === "desc";
  const order = rawSql(isDown ? "DESC" : "ASC");
  const needle = options.text.toLowerCase();
  const [first, end] = boundsOf(connection);
  let last = after ?? (isDown ? end + 1 : first - 1);
  while (isDown ? last > first : last < end) {
    const start = last;
    const stop = isDown
      ? Math.max(first, start - tables.windowRows)
      : Math.min(end, start + tables.windowRows);
    const window = isDown
      ? sql`${seq} < ${start} AND ${seq} >= ${stop}`
      : sql`${seq} > ${start} AND ${seq} <= ${stop}`;
    const looked = (to: number) => {
      const [low, high] = isDown ? [to, start - 1] : [start + 1, to];
      const count = sql`SELECT count(*) AS n FROM ${tables.all} WHERE ${seq} >= ${low} AND ${seq} <= ${high} AND ${own}`;
      slice.scanned += connection.get<{ n: number }>(count)?.n ?? 0;
    };
    const rows = connection.all<StoredRow>(
      sql`SELECT ${COLUMNS}, gateway.account_id, gateway.gateway_id FROM ${from}
          WHERE ${window} AND ${where} ORDER BY call.seq ${order} LIMIT ${PART_ROWS}`,
    );
    let read = 0;
    for (const row of rows) {
      last = row.seq;
      read += 1;
      const call = readCall(connection, row, options, needle);
      if (call !== null) slice.add(call);
      if (slice.isFull) break;
    }
    // All matches of the window were read, so every slice comes further, however slow the machine is.
    if (read === rows.length && rows.length < PART_ROWS) last = stop;
    looked(last);
    if (slice.isFull) return { last, isEnd: false };
  }
  return { last, isEnd: true };
}

/** The first and the last number of the file's rows. Two queries: SQLite finds one of the two without a scan. */
function boundsOf(connection: SqliteConnection): readonly [number, number] {
  const bounds = connection.get<{ first: number | null; last: number | null }>(
    sql`SELECT (SELECT min(seq) FROM call) AS first, (SELECT max(seq) FROM call) AS last`,
  );
  return [bounds?.first ?? 0, bounds?.last ?? -1];
}

/** Returns null if the texts do not contain the needle. */
function readCall(
  connection: SqliteConnection,
  stored: StoredRow,
  { previewLength, withBodies }: ScanOptions,
  needle: string,
): ScannedCall | null {
  const gateway = { accountId: String(stored["account_id"]), gatewayId: String(stored["gateway_id"]) };
  const row = toCallRow(stored, gateway);
  const needsBodies = withBodies || previewLength > 0 || needle !== "";
  const bytesOf = (side: BodySide) => (needsBodies ? readBody(connection, stored.seq, side) : null);
  const [request, response] = [bytesOf("request"), bytesOf("response")];
  const texts = [request, response].map((bytes) =>
    bytes === null ? "" : Buffer.from(bytes).toString("utf8"),
  );
  const [requestText = "", responseText = ""] = texts;
  if (needle !== "" && !texts.some((text) => bodyText(text).toLowerCase().includes(needle))) return null;
  const toBody = (bytes: Uint8Array | null, side: BodySide): StoredBody | null =>
    bytes === null || !withBodies
      ? null
      : {
          // Copied: posting a view would send the whole buffer behind it.
          bytes: new Uint8Array(bytes),
          contentType: side === "request" ? row.requestContentType : row.responseContentType,
          isComplete: side === "request" ? row.requestBodyComplete : row.responseBodyComplete,
        };
  return {
    row,
    prompt: previewLength === 0 ? null : promptPreview(requestText, previewLength),
    answer: previewLength === 0 ? null : answerPreview(responseText, previewLength),
    request: toBody(request, "request"),
    response: toBody(response, "response"),
  };
}

function readBody(connection: SqliteConnection, seq: number, side: BodySide): Uint8Array | null {
  const place = seq * 2 + (side === "request" ? 0 : 1);
  const body = connection.get<{ is_zstd: number; bytes: Uint8Array }>(
    sql`SELECT is_zstd, bytes FROM body WHERE place = ${place}`,
  );
  if (body === undefined) return null;
  return body.is_zstd === 1 ? zstdDecompressSync(body.bytes) : body.bytes;
}
