/** Medians, ratios, CPU time by thread and the outcome of the goals, as text. */
import { OTHERS, THREAD_PREFIX } from "./cpu-times.ts";
import { usedLoadGenerator } from "./native-programs.ts";
import { formatNumber, median } from "./statistics.ts";
import type { Measurement, Median, Metric, Workload } from "./workload.ts";

/** Above this share of the server's core for other processes, the machine was too busy: goals are not judged. */
const MAX_OTHERS = 0.1;
/** Threads below this share of a call's CPU time are not listed. */
const MIN_THREAD_SHARE = 0.005;

export function renderReport(workload: Workload, measurements: readonly Measurement[]): string {
  const medianOf = medianFrom(measurements);
  const generator = usedLoadGenerator();
  const lines = [
    `${workload.name}: ${workload.summary}`,
    `medians of ${workload.rounds} interleaved rounds; × is ours against the rival, above 1 is better`,
    ...(generator === null ? [] : [`load generator: ${generator}`]),
    ...describeOthers(measurements),
  ];
  const [ours] = workload.contenders;
  for (const scenario of workload.scenarios) {
    if (!measurements.some((m) => m.scenario === scenario.name)) continue;
    lines.push("", scenario.name);
    for (const metric of scenario.metrics) {
      const own = medianOf(ours?.name ?? "", scenario.name, metric.name);
      const cells = workload.contenders.flatMap((contender) => {
        const value = medianOf(contender.name, scenario.name, metric.name);
        if (value === null) return [];
        const ratio =
          contender === ours || own === null ? "" : ` (×${advantage(metric, own, value).toFixed(2)})`;
        return [`${contender.name} ${formatNumber(value)}${ratio}`];
      });
      lines.push(`  ${metric.name} [${metric.unit}]: ${cells.join(", ")}`);
    }
    for (const { name } of workload.contenders) {
      const threads = threadsOf(measurements, name, scenario.name, medianOf);
      if (threads.length > 1) lines.push(`  threads of ${name} [µs]: ${threads.join(", ")}`);
    }
  }
  if (workload.goals !== undefined) lines.push("");
  for (const goal of workload.goals ?? [])
    lines.push(
      `${isBusy(measurements) ? "unclear" : goal.isMet(medianOf) ? "met    " : "MISSED "} ${goal.text}`,
    );
  return `${lines.join("\n")}\n`;
}

export function medianFrom(measurements: readonly Measurement[]): Median {
  return (contender, scenario, metric) => median(valuesOf(measurements, contender, scenario, metric));
}

export function valuesOf(
  measurements: readonly Measurement[],
  contender: string,
  scenario: string,
  metric: string,
): readonly number[] {
  return measurements
    .filter((m) => m.contender === contender && m.scenario === scenario)
    .map((m) => m.values[metric])
    .filter((value) => value !== undefined);
}

/** How many times better the first value is than the second. */
export function advantage(metric: Metric, own: number, other: number): number {
  return metric.better === "higher" ? own / other : other / own;
}

/** How busy other processes kept the server's core. */
export function describeOthers(measurements: readonly Measurement[]): readonly string[] {
  const shares = sharesOfOthers(measurements);
  const middle = median(shares);
  if (middle === null) return [];
  const percent = (share: number) => `${(share * 100).toFixed(0)} %`;
  const text = `other processes used ${percent(middle)} of the server's core (median; at most ${percent(Math.max(...shares))})`;
  return [isBusy(measurements) ? `${text}: THE MACHINE WAS BUSY, the figures are not reliable` : text];
}

export function isBusy(measurements: readonly Measurement[]): boolean {
  return (median(sharesOfOthers(measurements)) ?? 0) > MAX_OTHERS;
}

function sharesOfOthers(measurements: readonly Measurement[]): readonly number[] {
  return measurements.map((m) => m.values[OTHERS]).filter((value) => value !== undefined);
}

/** CPU time per call of each thread, largest first. */
function threadsOf(
  measurements: readonly Measurement[],
  contender: string,
  scenario: string,
  medianOf: Median,
): readonly string[] {
  const names = new Set(
    measurements
      .filter((m) => m.contender === contender && m.scenario === scenario)
      .flatMap((m) => Object.keys(m.values).filter((key) => key.startsWith(THREAD_PREFIX))),
  );
  const total = medianOf(contender, scenario, "cpu") ?? 0;
  return [...names]
    .map((name) => ({ name, us: medianOf(contender, scenario, name) ?? 0 }))
    .filter(({ us }) => us > total * MIN_THREAD_SHARE)
    .sort((a, b) => b.us - a.us)
    .map(({ name, us }) => `${name.slice(THREAD_PREFIX.length)} ${formatNumber(us)}`);
}
