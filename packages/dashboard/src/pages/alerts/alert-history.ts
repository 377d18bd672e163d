/** The last day of what an alert would measure, and how often it would have fired. Windows are counted one after the other; the service lets them slide. */
import type { AlertMetric, DeliveryStep } from "@signalbox/client";
import { totalOf } from "../gateways/analytics/usage-total.ts";
import type { Usage } from "../gateways/analytics/usage.ts";

export interface MetricHistory {
  readonly stepMs: number;
  readonly times: readonly number[];
  /** Null where there was too little to measure. */
  readonly values: readonly (number | null)[];
}

export const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export type CallMetric = Extract<AlertMetric, "error_rate" | "latency_p95" | "spend">;

export function isCallMetric(metric: AlertMetric): metric is CallMetric {
  return metric === "error_rate" || metric === "latency_p95" || metric === "spend";
}

/** Windows of whole minutes, or of whole hours if the sums are by hour. */
export function stepOf(windowSeconds: number, areHours: boolean): number {
  const unit = areHours ? HOUR_MS : MINUTE_MS;
  return Math.max(1, Math.round((windowSeconds * 1000) / unit)) * unit;
}

export function windowsOf(now: number, stepMs: number): number[] {
  const last = Math.floor(now / stepMs) * stepMs;
  const count = Math.max(1, Math.round(DAY_MS / stepMs));
  return Array.from({ length: count }, (_, i) => last - (count - 1 - i) * stepMs);
}

export function callHistory(
  rows: readonly Usage[],
  metric: CallMetric,
  {
    times,
    stepMs,
    minCalls,
  }: { readonly times: readonly number[]; readonly stepMs: number; readonly minCalls: number },
): MetricHistory {
  const ofWindow = Map.groupBy(
    rows,
    (row) => Math.floor(Date.parse(row.minute ?? row.hour ?? "") / stepMs) * stepMs,
  );
  const values = times.map((time) => {
    const total = totalOf(ofWindow.get(time) ?? []);
    if (metric === "spend") return total.cost;
    if (total.calls < Math.max(1, minCalls)) return null;
    if (metric === "error_rate") return total.errors / total.calls;
    return total.duration_p95 === null ? null : total.duration_p95 / 1000;
  });
  return { stepMs, times, values };
}

export function deliveryHistory(
  steps: readonly DeliveryStep[],
  times: readonly number[],
  stepMs: number,
): MetricHistory {
  const failed = new Map(steps.map((step) => [Date.parse(step.at), step.failed]));
  return { stepMs, times, values: times.map((time) => failed.get(time) ?? 0) };
}

/** A rule fires when its value reaches the threshold, and once until it has fallen below. */
export function firings(values: readonly (number | null)[], threshold: number): number {
  let count = 0;
  let isFiring = false;
  for (const value of values) {
    const isAbove = value !== null && value >= threshold;
    if (isAbove && !isFiring) count += 1;
    isFiring = isAbove;
  }
  return count;
}
