/** Scans day files. The cursor of a scan is a day and the number of a row in its file. */
import { zstdDecompressSync } from "node:zlib";
import { joinSql, rawSql, sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { answerPreview, bodyText, promptPreview } from "./body-text.ts";
import type { BodySide, StoredBody } from "./call-log.ts";
import type { CallScan, ScannedCall } from "./call-scan.ts";
import { CALL_SELECT_LIST } from "./day-schema.ts";
import type { CallSelection } from "./selection.ts";
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

  /** Some rows were looked at. */
  looked(rows: number): void {
    this.scanned += rows;
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
  // A file without calls of the gateways is not read.
  const some = connection.get(sql`SELECT 1 FROM gateway WHERE ${own} AND rows > 0 LIMIT 1`);
  if (some === undefined) return { last: null, isEnd: true };
  const conditions = SQLITE_SELECTION.conditions(scan.selection);
  const few = isView(connection) ? null : fewRows(scan.selection);
  if (few !== null) conditions.push(few.condition);
  return readRows(
    connection,
    { own, where: joinSql([own, ...conditions], " AND "), index: few?.index ?? rawSql("") },
    scan,
    scan.direction,
    after,
    slice,
  );
}

/** Reads the rows of all accounts that were added after `after`, oldest first. */
export function scanStored(
  connection: SqliteConnection,
  after: number,
  options: ScanOptions,
  slice: ScanSlice,
): Scanned {
  const all = rawSql("1 = 1");
  return readRows(connection, { own: all, where: all, index: rawSql("") }, options, "asc", after, slice);
}

interface Rows {
  /** The rows that may be looked at. */
  readonly own: SqlQuery;
  /** Those of them that match. */
  readonly where: SqlQuery;
  /** The index that has the few rows which can match; empty: the rows are read one after the other. */
  readonly index: SqlQuery;
}

function readRows(
  connection: SqliteConnection,
  { own, where, index }: Rows,
  options: ScanOptions,
  direction: "asc" | "desc",
  after: number | null,
  slice: ScanSlice,
): Scanned {
  const isDown = direction === "desc";
  const order = rawSql(isDown ? "DESC" : "ASC");
  const needle = options.text.toLowerCase();
  const [first, end] = boundsOf(connection);
  let last = after ?? (isDown ? end + 1 : first - 1);
  // The index leaves out most rows, so a statement may span more of them.
  const windowRows = index.parts.join("") === "" ? WINDOW_ROWS : WINDOW_ROWS * INDEXED_FACTOR;
  while (isDown ? last > first : last < end) {
    const window = isDown
      ? sql`call.seq < ${last} AND call.seq >= ${last - windowRows}`
      : sql`call.seq > ${last} AND call.seq <= ${last + windowRows}`;
    // `CROSS JOIN` keeps the order of the tables: with the gateway first, every part would sort the whole file.
    const rows = connection.all<StoredRow>(
      sql`SELECT ${COLUMNS}, gateway.account_id, gateway.gateway_id FROM call${index} CROSS JOIN gateway ON gateway.key = call.gateway
          WHERE ${window} AND ${where} ORDER BY call.seq ${order} LIMIT ${PART_ROWS}`,
    );
    const from = last;
    for (const row of rows) {
      last = row.seq;
      const call = readCall(connection, row, options, needle);
      if (call !== null) slice.add(call);
      if (slice.isFull) {
        slice.looked(countRows(connection, own, from, last));
        return { last, isEnd: false };
      }
    }
    if (rows.length < PART_ROWS) last = isDown ? from - windowRows : from + windowRows;
    slice.looked(countRows(connection, own, from, last));
    if (slice.isFull) return { last, isEnd: false };
  }
  return { last, isEnd: true };
}

/** A file of an earlier version is read through a view, for which no index can be named. */
function isView(connection: SqliteConnection): boolean {
  return connection.get(sql`SELECT 1 FROM temp.sqlite_master WHERE name = 'call'`) !== undefined;
}

/** The first and the last number of the file's rows. Two queries: SQLite finds one of the two without a scan. */
function boundsOf(connection: SqliteConnection): readonly [number, number] {
  const bounds = connection.get<{ first: number | null; last: number | null }>(
    sql`SELECT (SELECT min(seq) FROM call) AS first, (SELECT max(seq) FROM call) AS last`,
  );
  return [bounds?.first ?? 0, bounds?.last ?? -1];
}

/** Rows after one number up to another, in either direction. */
function countRows(connection: SqliteConnection, own: SqlQuery, from: number, to: number): number {
  const [low, high] = from < to ? [from + 1, to] : [to, from - 1];
  const row = connection.get<{ n: number }>(
    sql`SELECT count(*) AS n FROM call CROSS JOIN gateway ON gateway.key = call.gateway
        WHERE call.seq >= ${low} AND call.seq <= ${high} AND ${own}`,
  );
  return row?.n ?? 0;
}

/** The indexes of the dashboard's filters: most calls neither fail nor come from the cache. */
function fewRows(selection: CallSelection): { index: SqlQuery; condition: SqlQuery } | null {
  const isOnly = (field: string, value: number) =>
    selection.filters.some(
      (filter) =>
        filter.field === field && filter.operator === "eq" && filter.values.every((one) => one === value) && filter.values.length > 0,
    );
  if (isOnly("success", 0)) return { index: rawSql(" INDEXED BY call_failed"), condition: rawSql("success = 0") };
  return isOnly("cached", 1)
    ? { index: rawSql(" INDEXED BY call_cached"), condition: rawSql("cached = 1") }
    : null;
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
