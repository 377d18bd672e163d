import type { AlertMetric } from "@signalbox/client";

export const METRIC_TITLES: Readonly<Record<AlertMetric, string>> = {
  error_rate: "Error rate",
  latency_p95: "Latency (95th percentile)",
  spend: "Spend",
  guardrails: "Guardrail findings",
  failed_deliveries: "Failed deliveries",
  paused_routes: "Paused webhook routes",
  webhook_issues: "New webhook issues",
  dead_letters: "Dead letters",
};

export const METRIC_SIGNS: Readonly<Record<AlertMetric, string>> = {
  error_rate: "%",
  latency_p95: "seconds",
  spend: "$",
  guardrails: "calls",
  failed_deliveries: "deliveries",
  paused_routes: "routes",
  webhook_issues: "issues",
  dead_letters: "dead letters",
};

/** What the number of a threshold is. */
export const METRIC_UNITS: Readonly<Record<AlertMetric, string>> = {
  error_rate: "Percent of the calls.",
  latency_p95: "Seconds to the end of the response.",
  spend: "US dollars in the window.",
  guardrails: "Calls in the window in which a guardrail found something.",
  failed_deliveries: "Deliveries in the window.",
  paused_routes: "Routes that were paused in the window because of their receivers.",
  webhook_issues: "Issues that opened in the window: routes whose events fail for a new cause.",
  dead_letters: "Pieces of work in the window.",
};

export function showAmount(metric: AlertMetric, value: number): string {
  if (metric === "error_rate") return `${(value * 100).toFixed(1)} %`;
  if (metric === "latency_p95") return `${value.toFixed(2)} s`;
  return metric === "spend" ? `$${value.toFixed(value < 1 ? 4 : 2)}` : String(value);
}

/** The number that a person types for a threshold, and back: a share is typed in percent. */
export function typedThreshold(metric: AlertMetric, threshold: number): string {
  return String(metric === "error_rate" ? Number((threshold * 100).toPrecision(12)) : threshold);
}

export function thresholdOf(metric: AlertMetric, typed: string): number {
  return metric === "error_rate" ? Number((Number(typed) / 100).toPrecision(12)) : Number(typed);
}

/** What is usual, for a new rule. */
export const USUAL_THRESHOLDS: Readonly<Record<AlertMetric, string>> = {
  error_rate: "5",
  latency_p95: "10",
  spend: "10",
  guardrails: "1",
  failed_deliveries: "5",
  paused_routes: "1",
  webhook_issues: "1",
  dead_letters: "1",
};
