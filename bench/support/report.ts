/** Medians, ratios and the outcome of the goals, as text for people. */
import type { Metric, Workload } from "./workload.ts";

export interface Measurement {
  readonly contender: string;
  readonly scenario: string;
  readonly round: number;
  readonly values: Readonly<Record<string, number>>;
}

export function medianOf(
  measurements: readonly Measurement[],
  contender: string,
  scenario: string,
  metric: string,
): number | null {
  const values = measurements
    .filter((m) => m.contender === contender && m.scenario === scenario)
    .map((m) => m.values[metric])
    .filter((value) => value !== undefined)
    .sort((a, b) => a - b);
  if (values.length === 0) return null;
  const middle = Math.floor(values.length / 2);
  const upper = values[middle] ?? 0;
  return values.length % 2 === 1 ? upper : ((values[middle - 1] ?? 0) + upper) / 2;
}

export function renderReport(workload: Workload, measurements: readonly Measurement[]): string {
  const lines = [
    `${workload.name}: ${workload.summary}`,
    `medians of ${workload.rounds} interleaved rounds; × is ours against the rival, above 1 is better`,
  ];
  const [ours] = workload.contenders;
  for (const scenario of workload.scenarios) {
    lines.push("", scenario.name);
    for (const metric of scenario.metrics) {
      const own = medianOf(measurements, ours?.name ?? "", scenario.name, metric.name);
      const cells = workload.contenders.map((contender) => {
        const value = medianOf(measurements, contender.name, scenario.name, metric.name);
        if (value === null) return `${contender.name} –`;
        const ratio = contender === ours || own === null ? "" : ` (×${advantage(metric, own, value)})`;
        return `${contender.name} ${formatNumber(value)}${ratio}`;
      });
      lines.push(`  ${metric.name} [${metric.unit}]: ${cells.join(", ")}`);
    }
  }
  if (workload.goals !== undefined) {
    lines.push("");
    for (const goal of workload.goals) {
      const isMet = goal.isMet((...at) => medianOf(measurements, ...at));
      lines.push(`${isMet ? "met    " : "MISSED "} ${goal.text}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function advantage(metric: Metric, own: number, rival: number): string {
  return (metric.better === "higher" ? own / rival : rival / own).toFixed(2);
}

function formatNumber(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return value.toPrecision(3);
}
