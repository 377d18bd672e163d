import { LATENCY_BUCKETS_MS } from "../../engines/call-log/index.ts";

/**
 * Estimates from a histogram the duration that a share of the calls does not exceed: linear within a bucket, and the largest bound if the share
 * lies above all bounds. Null without calls.
 */
export function percentile(latency: readonly number[], share: number): number | null {
  const total = latency.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const wanted = total * share;
  let below = 0;
  for (const [i, count] of latency.entries()) {
    const upper = LATENCY_BUCKETS_MS[i];
    const lower = LATENCY_BUCKETS_MS[i - 1] ?? 0;
    if (upper === undefined) return lower;
    if (count > 0 && below + count >= wanted) {
      return Math.round((lower + ((upper - lower) * (wanted - below)) / count) * 100) / 100;
    }
    below += count;
  }
  return LATENCY_BUCKETS_MS.at(-1) ?? null;
}
