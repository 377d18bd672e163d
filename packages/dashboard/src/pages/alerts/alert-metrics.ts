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

/** What the number of a threshold is. */
export const METRIC_UNITS: Readonly<Record<AlertMetric, string>> = {
  error_rate: "A share from 0 to 1; 0.05 is 5 %.",
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
