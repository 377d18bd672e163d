/** What a long run shall reach, and how far it is. Totals of several runs with different seeds may be added: each run checks itself. */
import type { History } from "./history.ts";

export interface Totals {
  readonly kills: number;
  readonly pauses: number;
  readonly databaseFaults: number;
  readonly events: number;
  /** Events that were lost, doubled or out of order, and every other broken rule. */
  readonly violations: number;
}

/** Of all runs together (`--record`). */
export const GOAL: Totals = {
  kills: 650,
  pauses: 350,
  databaseFaults: 150,
  events: 1_000_000,
  violations: 0,
};

export function totalsOf(history: History): Totals {
  const databaseFaults = Object.entries(history.counts)
    .filter(([name]) => name.startsWith("fault: PostgreSQL"))
    .reduce((sum, [, count]) => sum + count, 0);
  return {
    kills: history.counted("fault: kill"),
    pauses: history.counted("fault: pause"),
    databaseFaults,
    events: history.counted("events acknowledged"),
    violations: history.violations,
  };
}

export function sumOf(all: readonly Totals[]): Totals {
  const sum = (name: keyof Totals) => all.reduce((total, each) => total + each[name], 0);
  return {
    kills: sum("kills"),
    pauses: sum("pauses"),
    databaseFaults: sum("databaseFaults"),
    events: sum("events"),
    violations: sum("violations"),
  };
}

export const isReached = (totals: Totals): boolean =>
  totals.kills >= GOAL.kills &&
  totals.pauses >= GOAL.pauses &&
  totals.databaseFaults >= GOAL.databaseFaults &&
  totals.events >= GOAL.events;

export const describeTotals = ({ kills, pauses, databaseFaults, events, violations }: Totals): string =>
  `${events} events acknowledged, ${kills} kills, ${pauses} pauses, ${databaseFaults} faults of PostgreSQL, ${violations} violations`;
