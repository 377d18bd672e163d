/**
 * `npm run chaos -- --minutes n [--seed s] [--load agents]`: runs a cluster under load and random faults. Prints a summary. If a rule is broken, it
 * prints the history with the seed, and exits with 1. `--until goal` ends it earlier, when it has reached the goal of a long run (test/chaos/goal.ts).
 * `--record file` adds a line with the seed and the totals to a file, and prints the sum of all its runs; the goal is that of all of them.
 * `--only "pause,black hole to PostgreSQL"` injects these kinds of faults only.
 * `npm run chaos -- --rolls n [--balancer nginx]` restarts the nodes one after the other behind a load balancer instead. See docs/decisions/0160.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { FAULT_KINDS, type FaultKind } from "../test/chaos/faults.ts";
import type { History } from "../test/chaos/history.ts";
import { describeTotals, isReached, sumOf, totalsOf, type Totals } from "../test/chaos/goal.ts";
import { randomSteps } from "../test/chaos/plan.ts";
import { LOAD_KINDS, type LoadKind, NODES, runChaos } from "../test/chaos/run-chaos.ts";
import { runRolls } from "../test/chaos/rolling/run-rolls.ts";
import useCompileCache from "./support/compile-cache.ts";

const USAGE = `usage: npm run chaos -- --minutes <n> [--seed <s>] [--load gateway|agents|both] [--until goal] [--record <file>] [--only <fault>,<fault>]
       npm run chaos -- --rolls <n> [--balancer haproxy|nginx]`;

/** Shorter than the longest partitions of a plan, so that nodes also refuse calls; longer than the restarts of PostgreSQL. */
const MAX_STALE_MS = 10_000;

await useCompileCache();
// Connections to servers that were killed may still be closing.
process.exit(await main());

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "2" },
      seed: { type: "string" },
      rolls: { type: "string" },
      balancer: { type: "string", default: "haproxy" },
      load: { type: "string", default: "both" },
      until: { type: "string" },
      record: { type: "string" },
      only: { type: "string" },
    },
  });
  const { balancer } = values;
  const minutes = Number(values.minutes);
  const rolls = Number(values.rolls ?? 1);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  const isKnown =
    (balancer === "haproxy" || balancer === "nginx") &&
    (values.until === undefined || values.until === "goal");
  const load = LOAD_KINDS.find((kind) => kind === values.load);
  const only = values.only === undefined ? FAULT_KINDS : toKinds(values.only);
  if (
    !(minutes > 0) ||
    !(rolls > 0) ||
    !Number.isInteger(seed) ||
    !isKnown ||
    load === undefined ||
    only.length === 0
  ) {
    console.error(USAGE);
    return 2;
  }
  if (values.rolls !== undefined)
    return report(await runRolls({ rolls, balancer, onProgress: printTime(), signal: endSignal() }), "");
  const { until, record } = values;
  return runFaults({ seed, minutes, load, isUntilGoal: until === "goal", record, only });
}

interface FaultRun {
  readonly seed: number;
  readonly minutes: number;
  readonly load: LoadKind;
  readonly isUntilGoal: boolean;
  readonly record: string | undefined;
  readonly only: readonly FaultKind[];
}

/** Empty if one of the names is unknown. */
function toKinds(names: string): FaultKind[] {
  const kinds = names.split(",").map((name) => FAULT_KINDS.find((kind) => kind === name.trim()));
  return kinds.every((kind) => kind !== undefined) ? kinds : [];
}

async function runFaults({ seed, minutes, load, isUntilGoal, record, only }: FaultRun): Promise<number> {
  const begun = new Date();
  const earlier = record === undefined ? [] : readRecord(record);
  const isDone = (soFar: History) => isReached(sumOf([...earlier, totalsOf(soFar)]));
  console.log(`seed ${seed}, at most ${minutes} min${isUntilGoal ? ", until the goal" : ""}, load ${load}`);
  const history = await runChaos({
    seed,
    plan: randomSteps(seed, NODES, only),
    maxStaleMs: MAX_STALE_MS,
    load,
    onProgress: printTime(),
    signal: endSignal(minutes * 60_000),
    ...(isUntilGoal ? { isEnough: isDone } : {}),
  });
  const code = report(
    history,
    `broken with seed ${seed}; repeat: npm run chaos -- --minutes ${minutes} --seed ${seed} --load ${load}`,
  );
  const totals = totalsOf(history);
  const lasted = Math.round((Date.now() - begun.getTime()) / 1000);
  console.log(`\nseed ${seed}, load ${load}, ${lasted} s: ${describeTotals(totals)}`);
  if (record !== undefined) {
    appendFileSync(record, `${JSON.stringify({ seed, load, begun, lasted, ...totals })}\n`);
    const runs = readRecord(record);
    console.log(`all ${runs.length} runs of ${record}: ${describeTotals(sumOf(runs))}`);
  }
  if (isUntilGoal && code === 0 && !isDone(history)) console.log("the goal has not been reached yet");
  return code;
}

/** Runs of earlier days; none if there is no such file yet. */
function readRecord(file: string): Totals[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Totals);
}

/**
 * The first SIGTERM ends the run early, with its summary. A timer of its own: a signal of `AbortSignal.timeout` that only `AbortSignal.any` refers to
 * may be collected before it fires.
 */
function endSignal(afterMs?: number): AbortSignal {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  if (afterMs !== undefined) setTimeout(() => stop.abort(), afterMs).unref();
  return stop.signal;
}

function printTime(): (text: string) => void {
  const startedAt = performance.now();
  return (text) =>
    console.log(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(6)} s  ${text}`);
}

/** Prints the summary; returns the exit code. */
function report(history: History, hint: string): number {
  console.log("");
  for (const [name, count] of Object.entries(history.counts))
    console.log(`${String(count).padStart(8)}  ${name}`);
  console.log(`${String(history.violations).padStart(8)}  violations`);
  if (history.violations === 0) return 0;
  console.error(`\n${String(history)}\n\n${hint}`);
  return 1;
}
