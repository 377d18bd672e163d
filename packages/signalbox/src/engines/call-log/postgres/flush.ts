/**
 * One transaction that adds calls, their bodies, and the figures that include them (invariant 5).
 *
 *   position of the writer ─► calls (COPY) ─► bodies (COPY) ─► totals ─► usage, counts and sizes (one statement) ─► COMMIT
 *
 * The figures come last: their rows are shared by all nodes, and their locks are held until the commit.
 */
import type { Client } from "pg";
import type { CallQuota } from "../call-log.ts";
import { toSqlName, USAGE_SUMS, type UsageSum } from "../columns.ts";
import { FIRST_TOKEN_COLUMNS, LATENCY_COLUMNS, SUM_COLUMNS } from "../day-schema.ts";
import { keyOf } from "../gateway-rows.ts";
import { BatchUsage } from "../batch-usage.ts";
import { type PackedRow, packedRows } from "../packed-row.ts";
import type { RowBatch } from "../row-batch.ts";
import { toStoredBody } from "../stored-body.ts";
import type { BinaryRows } from "./binary-copy.ts";
import { copyFrom } from "./copy-statement.ts";
import { type DayStart, dayStartOf } from "./days.ts";
import { BODY_OVERHEAD_BYTES } from "./delete-calls.ts";
import {
  BODY_FIELDS,
  CALL_FIELDS,
  COPY_BODIES,
  COPY_CALLS,
  encodeBody,
  encodeCall,
  makeStorable,
} from "./row-encoding.ts";
import { deltasJson, INSERT_DELTAS } from "./totals-tables.ts";

/** Bytes that PostgreSQL adds to a row: the headers of the row, and its entry in the index. */
const ROW_OVERHEAD_BYTES = 80;

const TYPES: Readonly<Record<UsageSum["kind"], string>> = { integer: "bigint", real: "double precision" };
const SUMS: [string, UsageSum][] = Object.entries(USAGE_SUMS);
const HOUR_TYPES = [
  "gateway integer, hour bigint, provider text, model text",
  ...SUMS.map(([name, { kind }]) => `${toSqlName(name)} ${TYPES[kind]}`),
  ...[...LATENCY_COLUMNS, ...FIRST_TOKEN_COLUMNS].map((name) => `${name} bigint`),
].join(", ");
const HOUR_UPDATES = SUM_COLUMNS.map((name) => `${name} = h.${name} + excluded.${name}`).join(", ");

/**
 * All nodes lock rows in the same order, so that no two wait for each other: the day (PostgreSQL runs the main statement first), the counts, the
 * hours, each sorted.
 */
const ADD_FIGURES = `
WITH hours AS (
  INSERT INTO call_log_hour AS h (gateway, hour, provider, model, ${SUM_COLUMNS.join(", ")})
  SELECT gateway, hour, provider, model, ${SUM_COLUMNS.join(", ")} FROM json_to_recordset($1::json) AS r(${HOUR_TYPES})
  ORDER BY gateway, hour, provider COLLATE "C", model COLLATE "C"
  ON CONFLICT (gateway, hour, provider, model) DO UPDATE SET ${HOUR_UPDATES}
), counts AS (
  INSERT INTO call_log_count AS c (gateway, day, rows)
  SELECT gateway, day, rows FROM json_to_recordset($2::json) AS r(gateway integer, day bigint, rows bigint) ORDER BY gateway, day
  ON CONFLICT (gateway, day) DO UPDATE SET rows = c.rows + excluded.rows
)
INSERT INTO call_log_day AS d (day, rows, row_bytes, bodies, body_bytes)
SELECT day, rows, row_bytes, bodies, body_bytes
FROM json_to_recordset($3::json) AS r(day bigint, rows bigint, row_bytes bigint, bodies bigint, body_bytes bigint) ORDER BY day
ON CONFLICT (day) DO UPDATE SET rows = d.rows + excluded.rows, row_bytes = d.row_bytes + excluded.row_bytes,
  bodies = d.bodies + excluded.bodies, body_bytes = d.body_bytes + excluded.body_bytes`;

/** All nodes together keep a `stop` quota: one at a time adds rows to such a gateway. */
const LOCK_GATEWAYS = "SELECT key FROM call_log_gateway WHERE key = ANY ($1::int[]) ORDER BY key FOR UPDATE";
/** A statement of its own: it must see what was committed while the lock was awaited. */
const COUNT_ROWS =
  "SELECT gateway AS key, sum(rows)::float8 AS rows FROM call_log_count WHERE gateway = ANY ($1::int[]) GROUP BY gateway";

interface QueuedBody {
  readonly id: string;
  readonly side: 0 | 1;
  readonly body: Uint8Array;
  readonly day: DaySize;
}

interface DaySize {
  readonly day: DayStart;
  rows: number;
  row_bytes: number;
  bodies: number;
  body_bytes: number;
}

export interface FlushOptions {
  readonly batches: readonly RowBatch[];
  /** Numbers of the gateways, by `keyOf`. */
  readonly gatewayKeys: ReadonlyMap<string, number>;
  readonly quotas: ReadonlyMap<string, CallQuota>;
  readonly maxBodyBytes: number;
  /** Ids that are stored already; null as a rule. */
  readonly known: ReadonlySet<string> | null;
  readonly hasTotals: boolean;
}

export class Flush {
  readonly #options: FlushOptions;
  readonly #encoder: BinaryRows;
  readonly #usage = new BatchUsage();
  /** Rows that a gateway may still add. */
  readonly #free = new Map<number, number>();
  readonly #counts = new Map<string, { readonly gateway: number; readonly day: DayStart; rows: number }>();
  readonly #days = new Map<DayStart, DaySize>();
  readonly #seen: Set<string> | null;
  readonly #bodies: QueuedBody[] = [];

  constructor(options: FlushOptions, encoder: BinaryRows) {
    this.#options = options;
    this.#encoder = encoder;
    this.#seen = options.known === null ? null : new Set(options.known);
  }

  /** Runs inside the caller's transaction; returns the number of deltas of the totals. */
  async run(client: Client): Promise<number> {
    await this.#applyQuotas(client);
    const encoder = this.#encoder;
    await copyFrom(client, COPY_CALLS, () =>
      encoder.chunks(this.#addedCalls(), CALL_FIELDS, ({ call, gateway, size }) => {
        encodeCall(encoder, gateway, call, this.#options.hasTotals);
        size.row_bytes += encoder.rowBytes + ROW_OVERHEAD_BYTES;
      }),
    );
    if (this.#bodies.length > 0) {
      await copyFrom(client, COPY_BODIES, () =>
        encoder.chunks(this.#bodies, BODY_FIELDS, ({ id, side, body, day }) => {
          const stored = toStoredBody(body, this.#options.maxBodyBytes);
          encodeBody(encoder, id, side, stored);
          day.bodies += 1;
          day.body_bytes += stored.bytes.length + BODY_OVERHEAD_BYTES;
        }),
      );
    }
    const hours = this.#usage.hours().map(({ sums, ...hour }) => ({
      ...hour,
      ...Object.fromEntries(SUM_COLUMNS.map((name, i) => [name, finite(sums[i])])),
    }));
    const deltas = this.#options.hasTotals ? this.#usage.totals() : [];
    await client.query({ name: "add totals", text: INSERT_DELTAS, values: [deltasJson(deltas)] });
    await client.query({
      name: "add figures",
      text: ADD_FIGURES,
      values: [hours, [...this.#counts.values()], [...this.#days.values()]].map((rows) =>
        JSON.stringify(rows),
      ),
    });
    return deltas.length;
  }

  async #applyQuotas(client: Client): Promise<void> {
    const limits = new Map<number, number>();
    for (const [name, key] of this.#options.gatewayKeys) {
      const quota = this.#options.quotas.get(name);
      if (quota?.whenFull === "stop") limits.set(key, quota.maxRows);
    }
    if (limits.size === 0) return;
    const keys = [[...limits.keys()]];
    await client.query(LOCK_GATEWAYS, keys);
    const { rows } = await client.query<{ key: number; rows: number }>(COUNT_ROWS, keys);
    const counts = new Map(rows.map(({ key, rows: count }) => [key, count]));
    for (const [key, limit] of limits) this.#free.set(key, limit - (counts.get(key) ?? 0));
  }

  /** The calls that get a row. All new calls are counted, those that a quota keeps out, too. */
  *#addedCalls(): Generator<{ call: PackedRow; gateway: number; size: DaySize }, void> {
    const { batches, gatewayKeys, maxBodyBytes } = this.#options;
    let lastName = "";
    let gateway = 0;
    for (const call of packedRows(batches)) {
      const name = keyOf(call);
      if (name !== lastName) gateway = gatewayKeys.get(name) ?? 0;
      lastName = name;
      if (this.#isKnown(call.id)) continue;
      makeStorable(call, maxBodyBytes);
      this.#usage.add(call, gateway);
      const free = this.#free.get(gateway);
      if (free !== undefined && free <= 0) continue;
      if (free !== undefined) this.#free.set(gateway, free - 1);
      const size = this.#sizeOf(dayStartOf(call.id));
      size.rows += 1;
      this.#count(gateway, size.day);
      if (call.requestBody !== null)
        this.#bodies.push({ id: call.id, side: 0, body: call.requestBody, day: size });
      if (call.responseBody !== null)
        this.#bodies.push({ id: call.id, side: 1, body: call.responseBody, day: size });
      yield { call, gateway, size };
    }
  }

  #isKnown(id: string): boolean {
    if (this.#seen === null) return false;
    if (this.#seen.has(id)) return true;
    this.#seen.add(id);
    return false;
  }

  #sizeOf(day: DayStart): DaySize {
    let size = this.#days.get(day);
    if (size === undefined) {
      size = { day, rows: 0, row_bytes: 0, bodies: 0, body_bytes: 0 };
      this.#days.set(day, size);
    }
    return size;
  }

  #count(gateway: number, day: DayStart): void {
    const key = `${gateway} ${day}`;
    const count = this.#counts.get(key);
    if (count === undefined) this.#counts.set(key, { gateway, day, rows: 1 });
    else count.rows += 1;
  }
}

/** JSON has no other numbers. */
function finite(value = 0): number {
  return Number.isFinite(value) ? value : 0;
}
