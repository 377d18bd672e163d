/** What a workload exports: contenders, which all keep running, and scenarios, which are measured on each contender in turn. */
import type { CpuTimes } from "./cpu-times.ts";
import { formatNumber } from "./statistics.ts";

export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly better: "higher" | "lower";
  /** Not in the table of a comparison, where a steadier metric of the scenario stands for it. */
  readonly isDetail?: boolean;
}

export interface Scenario {
  readonly name: string;
  readonly metrics: readonly Metric[];
}

/** One value per metric of the scenario, and CPU time by thread; null where the contender does not take part. */
export type Sample = Readonly<Record<string, number>> | null;

export interface Contender {
  readonly name: string;
  /** Starts it once; it stays up, idle, while the others are measured. Null if it cannot be installed here. */
  start(): Promise<RunningContender | null>;
}

export interface RunningContender {
  measure(scenario: string, round: number): Promise<Sample>;
  /** CPU time of its server so far. A measurement begins when no server is busy. */
  cpuTimes?(): CpuTimes;
  stop(): Promise<void>;
}

export interface Workload {
  readonly name: string;
  readonly summary: string;
  /** The first is ours: ratios are ours against each other one. */
  readonly contenders: readonly Contender[];
  /**
   * Ours in another checkout, for `--before`. A workload that measures modules in this process has none: then the first contender of the
   * other checkout's own workload file is used.
   */
  readonly oursAt?: (checkout: string) => Contender;
  readonly scenarios: readonly Scenario[];
  /** Interleaved rounds; medians are over them. */
  readonly rounds: number;
  /** What must hold, such as "at least 85 % of bare node:http"; printed as met or MISSED, or unclear if the machine was busy. */
  readonly goals?: readonly Goal[];
  /** The rows of the workload in the summary of docs/benchmarks.md. */
  readonly headlines?: readonly Headline[];
}

export type Median = (contender: string, scenario: string, metric: string) => number | null;

/** A figure that other pages may repeat, such as "6.8 ×". */
export interface Headline {
  /** What the figure is, as the end of a sentence that begins with it. */
  readonly text: string;
  /** Null if it was not measured. */
  figure(median: Median): string | null;
}

export interface Goal {
  readonly text: string;
  isMet(median: Median): boolean;
}

export interface Measurement {
  readonly contender: string;
  readonly scenario: string;
  readonly round: number;
  readonly values: Readonly<Record<string, number>>;
}

/** A headline: how many times the rival's rate ours is. */
export function timesRival(
  text: string,
  rival: string,
  scenario: string,
  metric: string,
  ours = "signalbox",
): Headline {
  return {
    text,
    figure(median) {
      const [own, other] = [median(ours, scenario, metric), median(rival, scenario, metric)];
      return own === null || other === null ? null : `${(own / other).toFixed(1)} ×`;
    },
  };
}

/** A headline: a median of ours, with its unit. */
export function ownFigure(
  text: string,
  scenario: string,
  metric: string,
  unit: string,
  ours = "signalbox",
): Headline {
  return {
    text,
    figure(median) {
      const value = median(ours, scenario, metric);
      return value === null ? null : `${formatNumber(value)} ${unit}`;
    },
  };
}

/** Metrics of a load. CPU time is the first: a busy machine disturbs it least. */
export function loadMetrics(rate: string, unit: string): readonly Metric[] {
  return [
    { name: "cpu", unit: `µs/${unit}`, better: "lower" },
    { name: rate, unit: "1/s", better: "higher" },
    { name: "p50", unit: "ms", better: "lower", isDetail: true },
    { name: "p99", unit: "ms", better: "lower", isDetail: true },
  ];
}
