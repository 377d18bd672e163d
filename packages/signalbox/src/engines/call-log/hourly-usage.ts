/**
 * Adds up the usage of one transaction in memory, so that a commit touches each row of `hourly` once.
 * See README.md.
 */
import { rawSql, sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import { USAGE_SUMS, type UsageSum } from "./columns.ts";
import { SUM_COLUMNS } from "./day-schema.ts";
import type { PackedRow } from "./packed-row.ts";
import { LATENCY_BUCKETS_MS } from "./usage.ts";

export const HOUR_MS = 3_600_000;
export const MINUTE_MS = 60_000;
const SUMS: readonly UsageSum[] = Object.values(USAGE_SUMS);
const BUCKETS = LATENCY_BUCKETS_MS.length + 1;
const COLUMNS = rawSql(SUM_COLUMNS.join(", "));
const UPDATES = rawSql(SUM_COLUMNS.map((name) => `${name} = ${name} + excluded.${name}`).join(", "));

/** What one transaction adds to the usage of an hour. */
export interface HourlyRow {
  readonly hour: number;
  readonly gateway: number;
  readonly provider: string;
  readonly model: string;
  /** In the order of `SUM_COLUMNS`. */
  readonly sums: number[];
}

export class HourlyUsage {
  readonly #rows = new Map<string, HourlyRow>();
  #last: HourlyRow | null = null;

  add(call: PackedRow, gateway: number): void {
    const { sums } = this.#rowOf(call, gateway);
    for (const [i, { of }] of SUMS.entries()) sums[i] = (sums[i] ?? 0) + of(call);
    const bucket = SUMS.length + latencyBucket(call.number("durationMs"));
    sums[bucket] = (sums[bucket] ?? 0) + 1;
    const firstByteMs = call.number("firstByteMs");
    if (firstByteMs === 0 || !isStream(call.text("responseContentType"))) return;
    const first = SUMS.length + BUCKETS + latencyBucket(firstByteMs);
    sums[first] = (sums[first] ?? 0) + 1;
  }

  get rows(): Iterable<HourlyRow> {
    return this.#rows.values();
  }

  *upserts(): Iterable<SqlQuery> {
    for (const { hour, gateway, provider, model, sums } of this.#rows.values()) {
      yield sql`INSERT INTO hourly (hour, gateway, provider, model, ${COLUMNS})
        VALUES (${hour}, ${gateway}, ${provider}, ${model}, ${sqlList(sums)})
        ON CONFLICT (hour, gateway, provider, model) DO UPDATE SET ${UPDATES}`;
    }
  }

  #rowOf(call: PackedRow, gateway: number): HourlyRow {
    const hour = Math.floor(call.number("createdAt") / HOUR_MS) * HOUR_MS;
    const provider = call.text("provider");
    const model = call.text("model");
    const last = this.#last;
    const isSame =
      last?.hour === hour && last.gateway === gateway && last.provider === provider && last.model === model;
    if (last !== null && isSame) return last;
    const key = `${hour}\n${gateway}\n${provider}\n${model}`;
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = { hour, gateway, provider, model, sums: SUM_COLUMNS.map(() => 0) };
      this.#rows.set(key, row);
    }
    this.#last = row;
    return row;
  }
}

/** `text/event-stream`, and the event stream of AWS. */
export function isStream(contentType: string): boolean {
  return contentType.includes("event-stream") || contentType.includes("eventstream");
}

export function latencyBucket(durationMs: number): number {
  const bucket = LATENCY_BUCKETS_MS.findIndex((bound) => durationMs <= bound);
  return bucket === -1 ? LATENCY_BUCKETS_MS.length : bucket;
}
