/** Scans day files. The cursor of a scan is a day and the number of a row in its file. */
import { zstdDecompressSync } from "node:zlib";
import { joinSql, rawSql, sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { answerPreview, bodyText, promptPreview } from "./body-text.ts";
import type { BodySide, StoredBody } from "./call-log.ts";
import type { CallScan, ScannedCall } from "./call-scan.ts";
import { CALL_SELECT_LIST } from "./day-schema.ts";
import { SQLITE_SELECTION } from "./sqlite-selection.ts";
import { type StoredRow, toCallRow } from "./stored-row.ts";

/** Rows of one statement. */
const PART_ROWS = 100;
/** Time of one slice, so that other reads wait no longer. */
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
  const conditions = [
    sql`gateway.account_id = ${scan.accountId}`,
    ...SQLITE_SELECTION.conditions(scan.selection),
  ];
  if (scan.gatewayIds !== null) conditions.push(sql`gateway.gateway_id IN (${sqlList(scan.gatewayIds)})`);
  return readRows(connection, joinSql(conditions, " AND "), scan, scan.direction, after, slice);
}

/** Reads the rows of all accounts that were added after `after`, oldest first. */
export function scanStored(
  connection: SqliteConnection,
  after: number,
  options: ScanOptions,
  slice: ScanSlice,
): Scanned {
  return readRows(connection, rawSql("1 = 1"), options, "asc", after, slice);
}

function readRows(
  connection: SqliteConnection,
  where: SqlQuery,
  options: ScanOptions,
  direction: "asc" | "desc",
  after: number | null,
  slice: ScanSlice,
): Scanned {
  const isDown = direction === "desc";
  const needle = options.text.toLowerCase();
  let last = after;
  for (;;) {
    const from = last === null ? rawSql("1 = 1") : isDown ? sql`call.seq < ${last}` : sql`call.seq > ${last}`;
    // `CROSS JOIN` keeps the order of the tables: with the gateway first, every part would sort the whole file.
    const rows = connection.all<StoredRow>(
      sql`SELECT ${COLUMNS}, gateway.account_id, gateway.gateway_id FROM call CROSS JOIN gateway ON gateway.key = call.gateway
          WHERE ${from} AND ${where} ORDER BY call.seq ${rawSql(isDown ? "DESC" : "ASC")} LIMIT ${PART_ROWS}`,
    );
    for (const row of rows) {
      last = row.seq;
      slice.scanned += 1;
      const call = readCall(connection, row, options, needle);
      if (call !== null) slice.add(call);
      if (slice.isFull) return { last, isEnd: false };
    }
    if (rows.length < PART_ROWS) return { last, isEnd: true };
  }
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
