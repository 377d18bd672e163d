/** Which faults a run injects, and when. A plan depends on its seed only. */
import { createRandom, pick, type Random } from "../support/ledger/random.ts";
import { FAULT_KINDS, type FaultKind, type PlannedFault } from "./faults.ts";

/** Faults that are injected at the same time, each on another target. */
export type Step = readonly PlannedFault[];

/** Longest time of a fault. Beyond `maxStaleMs` nodes refuse calls, which only pauses and partitions reach. */
const MAX_MS: Readonly<Partial<Record<FaultKind, number>>> = {
  kill: 3000,
  pause: 20_000,
  "cut from PostgreSQL": 14_000,
  "black hole to PostgreSQL": 14_000,
  "black hole from PostgreSQL": 14_000,
  "PostgreSQL hangs": 6000,
  "full disk": 8000,
  "clock is set": 8000,
};
const OTHER_MAX_MS = 5000;
const MIN_MS: Readonly<Partial<Record<FaultKind, number>>> = { pause: 1000 };
const OTHER_MIN_MS = 300;
/** How often two faults happen at once. */
const TWO_AT_ONCE = 0.4;
const MAX_QUIET_MS = 1200;
/** How often a kind is chosen, compared with all others. So 200 kills come with 100 pauses and 60 faults of PostgreSQL. */
const WEIGHTS: Readonly<Partial<Record<FaultKind, number>>> = { kill: 20, pause: 10 };

/** Random faults without end, of all kinds or of some. */
export function* randomSteps(
  seed: number,
  nodes: number,
  only: readonly FaultKind[] = FAULT_KINDS,
): Generator<Step, never> {
  const random = createRandom(seed);
  const choices = only.flatMap((kind) => Array.from({ length: WEIGHTS[kind] ?? 1 }, () => kind));
  for (;;) {
    const first = randomFault(random, nodes, pick(random, choices));
    const step = [first];
    if (random() < TWO_AT_ONCE) {
      const second = randomFault(random, nodes, pick(random, choices));
      if (targetOf(second) !== targetOf(first)) step.push({ ...second, afterMs: first.afterMs });
    }
    yield step;
  }
}

/** Faults of one step have different targets. Together they are every kind, once. */
const GROUPS: readonly (readonly FaultKind[])[] = [
  ["kill", "black hole from PostgreSQL", "reset of all connections"],
  ["pause", "clock is set"],
  ["PostgreSQL restarts", "cut from peers"],
  ["black hole to PostgreSQL", "full disk"],
  ["PostgreSQL is shut down immediately", "slow PostgreSQL"],
  ["cut from PostgreSQL", "black hole to peers"],
  ["PostgreSQL crashes"],
  ["PostgreSQL ends sessions", "black hole from peers"],
  ["PostgreSQL hangs"],
  ["PostgreSQL fails over"],
];

/** Every kind of fault once, each for a short time. */
export function planEveryFault(seed: number, nodes: number): Step[] {
  const random = createRandom(seed);
  return GROUPS.map((kinds) => {
    const first = Math.floor(random() * nodes);
    // A node without a heartbeat is dead after 2.5 s: some faults are longer, some shorter.
    const durationMs = 500 + Math.round(random() * 3000);
    const afterMs = Math.round(random() * 300);
    return kinds.map((kind, i) => ({ kind, node: (first + i) % nodes, durationMs, afterMs }));
  });
}

function randomFault(random: Random, nodes: number, kind: FaultKind): PlannedFault {
  const minMs = MIN_MS[kind] ?? OTHER_MIN_MS;
  const maxMs = MAX_MS[kind] ?? OTHER_MAX_MS;
  return {
    kind,
    node: Math.floor(random() * nodes),
    // Most faults are short, so that a run has many; the longest ones are rare.
    durationMs: Math.round(minMs + random() ** 3 * (maxMs - minMs)),
    afterMs: Math.round(random() * MAX_QUIET_MS),
  };
}

function targetOf({ kind, node }: PlannedFault): string {
  return kind.startsWith("PostgreSQL") ? "PostgreSQL" : kind === "clock is set" ? "clock" : String(node);
}
