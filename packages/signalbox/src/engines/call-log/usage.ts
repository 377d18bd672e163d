/** Usage: sums over calls by hour, gateway, provider and model, kept beside the rows. */
import { USAGE_SUMS, type UsageSums } from "./columns.ts";

/** Minutes are added up from the rows of calls only: the sums beside the rows are those of hours. */
export const USAGE_GROUPS = ["minute", "hour", "day", "provider", "model", "gateway"] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

export interface UsageQuery {
  readonly accountId: string;
  /** Null: all gateways of the account. */
  readonly gatewayIds: readonly string[] | null;
  /** Milliseconds; `from` is inclusive and rounded down to the hour, `to` is exclusive. */
  readonly from: number;
  readonly to: number;
  readonly groupBy: readonly UsageGroup[];
}

/** The sums of one group. A group field is null if the query does not group by it. */
export interface UsageFigures extends UsageSums {
  /** Start of the minute, hour or day in milliseconds. */
  readonly time: number | null;
  readonly gatewayId: string | null;
  readonly provider: string | null;
  readonly model: string | null;
  /** Calls per bucket of `LATENCY_BUCKETS_MS`; the last element counts the calls above all bounds. */
  readonly latency: readonly number[];
  /** Streamed answers per bucket, by the time to their first byte, which is about that of the first token. */
  readonly firstToken: readonly number[];
}

/** Upper bounds in milliseconds: from a cached answer to a long generation. */
export const LATENCY_BUCKETS_MS = [
  5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000,
];

const SUM_NAMES = Object.keys(USAGE_SUMS) as (keyof UsageSums)[];

/** Adds two groups; the result has the group fields of the first. */
export function addUsageFigures(a: UsageFigures, b: UsageFigures): UsageFigures {
  const sums = Object.fromEntries(SUM_NAMES.map((name) => [name, a[name] + b[name]]));
  return {
    ...a,
    ...sums,
    latency: addBuckets(a.latency, b.latency),
    firstToken: addBuckets(a.firstToken, b.firstToken),
  };
}

function addBuckets(a: readonly number[], b: readonly number[]): number[] {
  return a.map((count, i) => count + (b[i] ?? 0));
}
