/**
 * Scans of calls in PostgreSQL, in the order of their ids. Texts are compared in this thread, so other work runs between a few calls.
 *
 * Rows have no order of storage here: a follower reads calls whose ids are old enough that no call of that age is still running.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import type { Clock } from "../../../core/clock.ts";
import type { Queryable } from "../../../core/queryable.ts";
import { joinSql, rawSql, sql, type SqlQuery } from "../../../core/sql.ts";
import { isUlid, ulidFloor, ulidTime } from "../../../core/ulid.ts";
import { answerPreview, bodyText, promptPreview } from "../body-text.ts";
import type { GatewayRef, StoredBody } from "../call-log.ts";
import type { CallNeighbours, CallScan, CallSlice, ScannedCall, StoredCalls } from "../call-scan.ts";
import { CALL_COLUMNS, listColumns } from "../columns.ts";
import { DAY_MS } from "../day-files.ts";
import { timeSpan } from "../selection-span.ts";
import { type StoredRow, toCallRow } from "../stored-row.ts";
import { gatewayCondition, keySql, timeOfId } from "./call-queries.ts";
import { startOfDayAt } from "./days.ts";
import { POSTGRES_SELECTION } from "./postgres-selection.ts";

const decompress = promisify(zstdDecompress);
const PART_ROWS = 100;
/** Rows that one statement looks at, whether they match or not: at most some ten milliseconds. */
const WINDOW_ROWS = 2000;
const SLICE_MS = 200;
const SLICE_BYTES = 4 * 1024 * 1024;
/** Calls between two turns of the event loop. */
const TURN_CALLS = 5;
/** Longer than any time limit of a call. */
const LAG_MS = 65 * 60_000;

const COLUMNS = rawSql(
  listColumns(CALL_COLUMNS)
    .map(({ sqlName }) => `call.${sqlName}`)
    .join(", "),
);

type ScanOptions = Pick<CallScan, "text" | "previewLength" | "withBodies">;

interface BodyRow {
  readonly id: string;
  readonly side: number;
  readonly is_zstd: boolean;
  readonly bytes: Uint8Array;
}

interface Window {
  readonly rows: number;
  /** The last id; null if no row follows the window. */
  readonly end: string | null;
  readonly bounds: readonly SqlQuery[];
  rowsUpTo(id: string): number;
}

export class ScanQueries {
  readonly #database: Queryable;
  readonly #clock: Clock;

  constructor(database: Queryable, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  async scan(scan: CallScan): Promise<CallSlice> {
    const calls: ScannedCall[] = [];
    const endsAt = performance.now() + SLICE_MS;
    const isDown = scan.direction === "desc";
    let cursor = scan.cursor !== null && isUlid(scan.cursor) ? scan.cursor : null;
    let scanned = 0;
    let bytes = 0;
    const conditions = POSTGRES_SELECTION.conditions(scan.selection);
    for (;;) {
      const window = await this.#window(scan, cursor, isDown);
      const rows = await this.#rows(
        gatewayCondition(scan),
        [...conditions, ...window.bounds],
        cursor,
        isDown,
        PART_ROWS,
      );
      const bodies = await this.#bodies(rows, scan);
      for (const [i, row] of rows.entries()) {
        cursor = String(row["id"]);
        const call = await toScanned(row, bodies, scan);
        if (call !== null) {
          calls.push(call);
          bytes += (call.request?.bytes.length ?? 0) + (call.response?.bytes.length ?? 0);
        }
        if (calls.length >= scan.limit || bytes >= SLICE_BYTES || performance.now() >= endsAt) {
          return { calls, scanned: scanned + window.rowsUpTo(cursor), next: cursor };
        }
        if (i % TURN_CALLS === 0) await nextTurn();
      }
      // A full part may end within the window.
      const isPart = rows.length === PART_ROWS;
      scanned += isPart ? window.rowsUpTo(cursor ?? "") : window.rows;
      if (!isPart && window.end === null) return { calls, scanned, next: null };
      if (!isPart) cursor = window.end;
      if (performance.now() >= endsAt) return { calls, scanned, next: cursor };
    }
  }

  /** The next rows of the gateways, whether they match or not: a statement looks at no others. */
  async #window(scan: CallScan, cursor: string | null, isDown: boolean): Promise<Window> {
    const { from, to } = timeSpan(scan.selection);
    const span: SqlQuery[] = [];
    if (Number.isFinite(from)) span.push(sql`call.id >= ${ulidFloor(timeOfId(startOfDayAt(from)))}`);
    if (Number.isFinite(to)) span.push(sql`call.id < ${ulidFloor(timeOfId(startOfDayAt(to) + DAY_MS))}`);
    const found = await this.#ids(gatewayCondition(scan), span, cursor, isDown, WINDOW_ROWS);
    const end = found.length < WINDOW_ROWS ? null : (found.at(-1) ?? null);
    const bound = end === null ? [] : [isDown ? sql`call.id >= ${end}` : sql`call.id <= ${end}`];
    return {
      rows: found.length,
      end,
      bounds: [...span, ...bound],
      rowsUpTo: (id) => found.filter((one) => (isDown ? one >= id : one <= id)).length,
    };
  }

  /** From the index only. */
  async #ids(
    gateways: SqlQuery,
    conditions: readonly SqlQuery[],
    cursor: string | null,
    isDown: boolean,
    limit: number,
  ): Promise<string[]> {
    const order = rawSql(isDown ? "DESC" : "ASC");
    const after = cursor === null ? [] : [isDown ? sql`call.id < ${cursor}` : sql`call.id > ${cursor}`];
    const where = joinSql([rawSql("call.gateway = gateway.key"), ...after, ...conditions], " AND ");
    const rows = await this.#database.all<{ id: string }>(
      sql`SELECT found.id FROM call_log_gateway AS gateway
          CROSS JOIN LATERAL (SELECT call.id FROM call_log AS call WHERE ${where} ORDER BY call.id ${order} LIMIT ${limit}) AS found
          WHERE ${gateways} ORDER BY found.id ${order} LIMIT ${limit}`,
    );
    return rows.map(({ id }) => id);
  }

  async storedAfter(position: string | null, limit: number): Promise<StoredCalls> {
    const end = ulidFloor(timeOfId(this.#clock.now() - LAG_MS));
    if (position === null || !isUlid(position)) return { calls: [], position: end, isEnd: true };
    const options = { text: "", previewLength: 0, withBodies: true };
    const count = Math.min(limit, PART_ROWS);
    const rows = await this.#rows(rawSql("1 = 1"), [sql`call.id < ${end}`], position, false, count);
    const bodies = await this.#bodies(rows, options);
    const calls: ScannedCall[] = [];
    for (const row of rows) {
      const call = await toScanned(row, bodies, options);
      if (call !== null) calls.push(call);
    }
    const isEnd = rows.length < count;
    const last = String(rows.at(-1)?.["id"] ?? position);
    return { calls, position: isEnd && end > last ? end : last, isEnd };
  }

  async neighbours(gateway: GatewayRef, id: string): Promise<CallNeighbours> {
    const key = keySql(gateway);
    const [newer, older] = await Promise.all([
      this.#database.get<{ id: string }>(
        sql`SELECT id FROM call_log WHERE gateway = ${key} AND id > ${id} ORDER BY id LIMIT 1`,
      ),
      this.#database.get<{ id: string }>(
        sql`SELECT id FROM call_log WHERE gateway = ${key} AND id < ${id} ORDER BY id DESC LIMIT 1`,
      ),
    ]);
    return { newer: newer?.id ?? null, older: older?.id ?? null };
  }

  /** The index begins with the gateway, so each gateway gives its first rows, and the first of all are taken. */
  #rows(
    gateways: SqlQuery,
    conditions: readonly SqlQuery[],
    cursor: string | null,
    isDown: boolean,
    limit: number,
  ): Promise<StoredRow[]> {
    const order = rawSql(isDown ? "DESC" : "ASC");
    const after = cursor === null ? [] : [isDown ? sql`call.id < ${cursor}` : sql`call.id > ${cursor}`];
    const where = joinSql([rawSql("call.gateway = gateway.key"), ...after, ...conditions], " AND ");
    return this.#database.all<StoredRow>(
      sql`SELECT found.*, gateway.account_id, gateway.gateway_id FROM call_log_gateway AS gateway
          CROSS JOIN LATERAL (SELECT ${COLUMNS} FROM call_log AS call WHERE ${where} ORDER BY call.id ${order} LIMIT ${limit}) AS found
          WHERE ${gateways} ORDER BY found.id ${order} LIMIT ${limit}`,
    );
  }

  async #bodies(
    rows: readonly StoredRow[],
    { text, previewLength, withBodies }: ScanOptions,
  ): Promise<Map<string, BodyRow>> {
    const ids = rows.map((row) => String(row["id"]));
    if (ids.length === 0 || (text === "" && previewLength === 0 && !withBodies)) return new Map();
    const times = ids.map(ulidTime);
    const [first, last] = [startOfDayAt(Math.min(...times)), startOfDayAt(Math.max(...times)) + DAY_MS].map(
      (time) => ulidFloor(timeOfId(time)),
    );
    const found = await this.#database.all<BodyRow>(
      sql`SELECT id, side, is_zstd, bytes FROM call_log_body
          WHERE id >= ${first ?? ""} AND id < ${last ?? ""} AND id = ANY (string_to_array(${ids.join(",")}, ','))`,
    );
    return new Map(found.map((body) => [`${body.id}/${body.side}`, body]));
  }
}

async function toScanned(
  stored: StoredRow,
  bodies: ReadonlyMap<string, BodyRow>,
  { text, previewLength, withBodies }: ScanOptions,
): Promise<ScannedCall | null> {
  const gateway = { accountId: String(stored["account_id"]), gatewayId: String(stored["gateway_id"]) };
  const row = toCallRow(stored, gateway);
  const read = async (side: number): Promise<Uint8Array | null> => {
    const body = bodies.get(`${row.id}/${side}`);
    if (body === undefined) return null;
    return body.is_zstd ? decompress(body.bytes) : body.bytes;
  };
  const [request, response] = [await read(0), await read(1)];
  const [requestText = "", responseText = ""] = [request, response].map((bytes) =>
    bytes === null ? "" : Buffer.from(bytes).toString("utf8"),
  );
  const needle = text.toLowerCase();
  const contains = (body: string) => bodyText(body).toLowerCase().includes(needle);
  if (needle !== "" && !contains(requestText) && !contains(responseText)) return null;
  const toBody = (bytes: Uint8Array | null, contentType: string, isComplete: boolean): StoredBody | null =>
    bytes === null || !withBodies ? null : { bytes: new Uint8Array(bytes), contentType, isComplete };
  return {
    row,
    prompt: previewLength === 0 ? null : promptPreview(requestText, previewLength),
    answer: previewLength === 0 ? null : answerPreview(responseText, previewLength),
    request: toBody(request, row.requestContentType, row.requestBodyComplete),
    response: toBody(response, row.responseContentType, row.responseBodyComplete),
  };
}
