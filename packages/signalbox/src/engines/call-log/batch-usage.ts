/**
 * Adds up the usage of one transaction in memory. Calls that agree in all that usage distinguishes are added up first; the hourly sums and the
 * totals by token and metadata are made from these few sums when the transaction commits.
 * See docs/decisions/0310 and README.md.
 */
import { rawSql, sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import { type NumberReader, USAGE_SUMS, type UsageSum } from "./columns.ts";
import { SUM_COLUMNS } from "./day-schema.ts";
import { SumTable } from "./sum-table.ts";
import { encodeTotals } from "./totals-blob.ts";
import { forEachLabel } from "./totals-dimension.ts";
import { LATENCY_BUCKETS_MS } from "./usage.ts";

export const HOUR_MS = 3_600_000;
export const MINUTE_MS = 60_000;
const SUMS: readonly UsageSum[] = Object.values(USAGE_SUMS);
const BUCKETS = LATENCY_BUCKETS_MS.length + 1;
const COLUMNS = rawSql(SUM_COLUMNS.join(", "));
const UPDATES = rawSql(SUM_COLUMNS.map((name) => `${name} = ${name} + excluded.${name}`).join(", "));

export type CountedText = "provider" | "model" | "responseContentType" | "tokenId" | "metadata";

/** A call, packed or stored. */
export interface CountedCall extends NumberReader {
  text(name: CountedText): string | null;
}

/** What one transaction adds to the usage of an hour. */
export interface HourlyRow {
  readonly hour: number;
  readonly gateway: number;
  readonly provider: string;
  readonly model: string;
  /** In the order of `SUM_COLUMNS`. */
  readonly sums: number[];
}

/** What one transaction adds to the totals of a dimension. */
export interface TotalsDelta {
  readonly gateway: number;
  readonly hour: number;
  readonly dimension: string;
  readonly bytes: Uint8Array;
}

interface Cell extends HourlyRow {
  readonly tokenId: string | null;
  readonly metadata: string | null;
}

export class BatchUsage {
  readonly #cells = new Map<string, Cell>();
  #last: Cell | null = null;

  add(call: CountedCall, gateway: number): void {
    const { sums } = this.#cellOf(call, gateway);
    for (let i = 0; i < SUMS.length; i++) sums[i] = (sums[i] ?? 0) + (SUMS[i]?.of(call) ?? 0);
    const bucket = SUMS.length + latencyBucket(call.number("durationMs"));
    sums[bucket] = (sums[bucket] ?? 0) + 1;
    const firstByteMs = call.number("firstByteMs");
    if (firstByteMs === 0 || !isStream(call.text("responseContentType") ?? "")) return;
    const first = SUMS.length + BUCKETS + latencyBucket(firstByteMs);
    sums[first] = (sums[first] ?? 0) + 1;
  }

  /** One row for each hour, gateway, provider and model, so that a commit touches each row of `hourly` once. */
  hours(): HourlyRow[] {
    const rows = new Map<string, HourlyRow>();
    for (const { hour, gateway, provider, model, sums } of this.#cells.values()) {
      const key = `${hour}\n${gateway}\n${provider}\n${model}`;
      const row = rows.get(key);
      if (row === undefined) rows.set(key, { hour, gateway, provider, model, sums: [...sums] });
      else for (let i = 0; i < sums.length; i++) row.sums[i] = (row.sums[i] ?? 0) + (sums[i] ?? 0);
    }
    return [...rows.values()];
  }

  *upserts(): Iterable<SqlQuery> {
    for (const { hour, gateway, provider, model, sums } of this.hours()) {
      yield sql`INSERT INTO hourly (hour, gateway, provider, model, ${COLUMNS})
        VALUES (${hour}, ${gateway}, ${provider}, ${model}, ${sqlList(sums)})
        ON CONFLICT (hour, gateway, provider, model) DO UPDATE SET ${UPDATES}`;
    }
  }

  /** One blob for each hour, gateway and dimension. */
  totals(): TotalsDelta[] {
    const places = Map.groupBy(this.#cells.values(), ({ hour, gateway }) => `${hour} ${gateway}`);
    return [...places.values()].flatMap((cells) => {
      const [{ hour, gateway } = { hour: 0, gateway: 0 }] = cells;
      const dimensions = new Map<string, SumTable<string | null>>();
      for (const cell of cells) {
        forEachLabel(cell, (dimension, value) => {
          let sums = dimensions.get(dimension);
          if (sums === undefined) {
            sums = new SumTable();
            dimensions.set(dimension, sums);
          }
          sums.add(value, cell.sums);
        });
      }
      return Array.from(dimensions, ([dimension, sums]) => ({
        gateway,
        hour,
        dimension,
        bytes: encodeTotals(sums.values, sums.table),
      }));
    });
  }

  #cellOf(call: CountedCall, gateway: number): Cell {
    const hour = Math.floor(call.number("createdAt") / HOUR_MS) * HOUR_MS;
    const provider = call.text("provider") ?? "";
    const model = call.text("model") ?? "";
    const tokenId = call.text("tokenId");
    const metadata = call.text("metadata");
    const last = this.#last;
    const isSame =
      last?.hour === hour &&
      last.gateway === gateway &&
      last.provider === provider &&
      last.model === model &&
      last.tokenId === tokenId &&
      last.metadata === metadata;
    if (last !== null && isSame) return last;
    const key = `${hour}\n${gateway}\n${provider}\n${model}\n${tokenId ?? ""}\n${metadata ?? ""}`;
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      cell = { hour, gateway, provider, model, tokenId, metadata, sums: SUM_COLUMNS.map(() => 0) };
      this.#cells.set(key, cell);
    }
    this.#last = cell;
    return cell;
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
