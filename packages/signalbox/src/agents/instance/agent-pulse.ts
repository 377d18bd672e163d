/**
 * How busy the agents of a process are: turns and their durations by minute, for the last hour. In memory and of fixed size, one for each agent and
 * account, because a list of agents is read often and a count over stored turns would read all of them.
 */
import type { InstanceRef } from "./instance-ref.ts";

export const PULSE_MINUTES = 60;
const MINUTE_MS = 60_000;
/** Milliseconds, each half above the one before: a percentile is at most that much too large. */
const BOUNDS = Array.from({ length: 32 }, (_, i) => 0.1 * 1.5 ** i);
const LOG_STEP = Math.log(1.5);

/** As it travels between nodes: a histogram can be added to others, a percentile cannot. */
export interface PulseFigures {
  readonly agent: string;
  /** Turns in each of the last minutes, the current one last. */
  readonly turns: readonly number[];
  readonly failed: number;
  readonly durations: readonly number[];
}

/** The turns of one agent in one account. */
export class Pulse {
  readonly #turns = new Uint32Array(PULSE_MINUTES);
  readonly #failed = new Uint32Array(PULSE_MINUTES);
  readonly #durations = new Uint32Array(PULSE_MINUTES * (BOUNDS.length + 1));
  /** The minute of each slot, since 1970. */
  readonly #minutes = new Float64Array(PULSE_MINUTES);

  add(now: number, durationMs: number, hasFailed: boolean): void {
    const minute = Math.floor(now / MINUTE_MS);
    const slot = minute % PULSE_MINUTES;
    const from = slot * (BOUNDS.length + 1);
    if (this.#minutes[slot] !== minute) {
      this.#minutes[slot] = minute;
      this.#turns[slot] = 0;
      this.#failed[slot] = 0;
      this.#durations.fill(0, from, from + BOUNDS.length + 1);
    }
    this.#turns[slot] = (this.#turns[slot] ?? 0) + 1;
    if (hasFailed) this.#failed[slot] = (this.#failed[slot] ?? 0) + 1;
    const at = from + bucketOf(durationMs);
    this.#durations[at] = (this.#durations[at] ?? 0) + 1;
  }

  read(agent: string, now: number): PulseFigures {
    const last = Math.floor(now / MINUTE_MS);
    const turns: number[] = [];
    const durations = Array.from({ length: BOUNDS.length + 1 }, () => 0);
    let failed = 0;
    for (let minute = last - PULSE_MINUTES + 1; minute <= last; minute++) {
      const slot = minute % PULSE_MINUTES;
      const isCurrent = this.#minutes[slot] === minute;
      turns.push(isCurrent ? (this.#turns[slot] ?? 0) : 0);
      if (!isCurrent) continue;
      failed += this.#failed[slot] ?? 0;
      for (let i = 0; i <= BOUNDS.length; i++)
        durations[i] = (durations[i] ?? 0) + (this.#durations[slot * (BOUNDS.length + 1) + i] ?? 0);
    }
    return { agent, turns, failed, durations };
  }
}

/** The pulses of all agents of a process. */
export class AgentPulses {
  readonly #pulses = new Map<string, Map<string, Pulse>>();

  of({ account, agent }: Pick<InstanceRef, "account" | "agent">): Pulse {
    const ofAccount = this.#pulses.get(account) ?? new Map<string, Pulse>();
    this.#pulses.set(account, ofAccount);
    const pulse = ofAccount.get(agent) ?? new Pulse();
    ofAccount.set(agent, pulse);
    return pulse;
  }

  read(account: string, now: number): PulseFigures[] {
    return [...(this.#pulses.get(account) ?? [])].map(([agent, pulse]) => pulse.read(agent, now));
  }
}

/** The figures of several nodes together, by agent. */
export function addPulses(all: readonly PulseFigures[]): Map<string, PulseFigures> {
  const sums = new Map<string, PulseFigures>();
  for (const one of all) {
    const known = sums.get(one.agent);
    sums.set(
      one.agent,
      known === undefined
        ? one
        : {
            agent: one.agent,
            turns: known.turns.map((count, i) => count + (one.turns[i] ?? 0)),
            failed: known.failed + one.failed,
            durations: known.durations.map((count, i) => count + (one.durations[i] ?? 0)),
          },
    );
  }
  return sums;
}

/** Milliseconds; null without turns. */
export function pulseP95({ durations }: PulseFigures): number | null {
  const total = durations.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let seen = 0;
  const at = durations.findIndex((count) => (seen += count) >= total * 0.95);
  return BOUNDS[at] ?? BOUNDS.at(-1) ?? null;
}

function bucketOf(ms: number): number {
  if (ms <= 0.1) return 0;
  return Math.min(BOUNDS.length, Math.ceil(Math.log(ms / 0.1) / LOG_STEP));
}
