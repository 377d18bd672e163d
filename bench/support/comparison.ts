/** The table of `--before`: two checkouts, measured alternately, with the spread of the rounds as a measure of noise. */
import { advantage, describeOthers, valuesOf } from "./report.ts";
import { formatNumber, median } from "./statistics.ts";
import type { Measurement, Metric, Scenario } from "./workload.ts";

export const BEFORE = "before";
export const AFTER = "after";

/** What a comparison leaves in its result file. */
export interface Comparison {
  readonly name: string;
  readonly scenarios: readonly Scenario[];
  readonly measurements: readonly Measurement[];
}

const HEADER = ["workload", "scenario", "metric", "before", "after", "ratio", "rounds", "verdict"];
const NUMBERS = new Set(["before", "after", "ratio"]);

const EXPLANATION = `before, after: medians of the rounds. ratio: median of the rounds' ratios, above 1 means that this checkout is better.
rounds: lowest and highest ratio of a round, that is the noise. verdict: better or WORSE if all rounds agree, which
happens by chance in one row of 32 with six rounds; else "same".`;

export function renderComparison(comparisons: readonly Comparison[]): string {
  const rows = comparisons.flatMap(({ name, scenarios, measurements }) =>
    scenarios.flatMap((scenario) =>
      scenario.metrics.flatMap((metric) => {
        if (metric.isDetail === true) return [];
        const cells = compare(measurements, scenario.name, metric);
        return cells === null ? [] : [[name, scenario.name, `${metric.name} [${metric.unit}]`, ...cells]];
      }),
    ),
  );
  const widths = HEADER.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const lines = [HEADER, widths.map((width) => "-".repeat(width)), ...rows].map((row) =>
    row
      .map((cell, i) =>
        NUMBERS.has(HEADER[i] ?? "") ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
  const others = describeOthers(comparisons.flatMap(({ measurements }) => measurements));
  return `${[...lines, "", EXPLANATION, ...others].join("\n")}\n`;
}

function compare(
  measurements: readonly Measurement[],
  scenario: string,
  metric: Metric,
): readonly string[] | null {
  const before = valuesOf(measurements, BEFORE, scenario, metric.name);
  const after = valuesOf(measurements, AFTER, scenario, metric.name);
  const ratios = after.flatMap((value, round) => {
    const other = before[round];
    return other === undefined ? [] : [advantage(metric, value, other)];
  });
  const [ratio, own, other] = [median(ratios), median(after), median(before)];
  if (ratio === null || own === null || other === null) return null;
  const [lowest, highest] = [Math.min(...ratios), Math.max(...ratios)];
  return [
    formatNumber(other),
    formatNumber(own),
    ratio.toFixed(2),
    ratios.length === 1 ? "one" : `${lowest.toFixed(2)}–${highest.toFixed(2)}`,
    ratios.length === 1 ? "" : lowest > 1 ? "better" : highest < 1 ? "WORSE" : "same",
  ];
}
