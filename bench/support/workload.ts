/** What a benchmark file exports: contenders that are all kept running, and scenarios that are measured on each in turn. */

export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly better: "higher" | "lower";
}

export interface Scenario {
  readonly name: string;
  readonly metrics: readonly Metric[];
}

/** One measured value per metric of the scenario; null where the contender cannot do the scenario. */
export type Sample = Readonly<Record<string, number>> | null;

export interface Contender {
  readonly name: string;
  /** Starts it once; it stays up, idle, while the others are measured. */
  start(): Promise<RunningContender>;
}

export interface RunningContender {
  measure(scenario: string, round: number): Promise<Sample>;
  /** Processor time its server has used so far; null where that is not known. */
  cpuMs?(): number | null;
  stop(): Promise<void>;
}

export interface Workload {
  readonly name: string;
  readonly summary: string;
  /** The first is ours: ratios are ours against each other one. */
  readonly contenders: readonly Contender[];
  /** Ours as another checkout of the repository has it, for `--before`. */
  readonly oursAt?: (checkout: string) => Contender;
  readonly scenarios: readonly Scenario[];
  /** Interleaved rounds; medians are over them. */
  readonly rounds: number;
  /** What must hold, e.g. "at least 85 % of bare node:http"; printed with the outcome. */
  readonly goals?: readonly Goal[];
}

export interface Goal {
  readonly text: string;
  isMet(median: (contender: string, scenario: string, metric: string) => number | null): boolean;
}
