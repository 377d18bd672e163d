/**
 * `npm run chaos -- --minutes n [--seed s] [--load agents]`: runs a cluster under load and random faults. Prints a summary. If a rule is broken, it prints the
 * history with the seed, and exits with 1. `npm run chaos -- --rolls n [--balancer nginx]` restarts the nodes one after the other behind a
 * load balancer instead. See docs/decisions/0160.
 */
import { parseArgs } from "node:util";
import type { History } from "../test/chaos/history.ts";
import { planFaults } from "../test/chaos/plan.ts";
import { LOAD_KINDS, type LoadKind, NODES, runChaos } from "../test/chaos/run-chaos.ts";
import { runRolls } from "../test/chaos/rolling/run-rolls.ts";

const USAGE = `usage: npm run chaos -- --minutes <n> [--seed <s>] [--load gateway|agents|both]
       npm run chaos -- --rolls <n> [--balancer haproxy|nginx]`;

/** Shorter than the longest partitions of a plan, so that nodes also refuse calls; longer than the restarts of PostgreSQL. */
const MAX_STALE_MS = 10_000;

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
    },
  });
  const { balancer } = values;
  const minutes = Number(values.minutes);
  const rolls = Number(values.rolls ?? 1);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  const isKnown = balancer === "haproxy" || balancer === "nginx";
  const load = LOAD_KINDS.find((kind) => kind === values.load);
  if (!(minutes > 0) || !(rolls > 0) || !Number.isInteger(seed) || !isKnown || load === undefined) {
    console.error(USAGE);
    return 2;
  }
  if (values.rolls === undefined) return runFaults(seed, minutes, load);
  return report(await runRolls({ rolls, balancer, onProgress: printTime(), signal: endSignal() }), "");
}

async function runFaults(seed: number, minutes: number, load: LoadKind): Promise<number> {
  const plan = planFaults({ seed, nodes: NODES, durationMs: minutes * 60_000 });
  console.log(`seed ${seed}, ${minutes} min, ${plan.flat().length} faults`);
  const history = await runChaos({
    seed,
    plan,
    maxStaleMs: MAX_STALE_MS,
    load,
    onProgress: printTime(),
    signal: endSignal(),
  });
  return report(
    history,
    `broken with seed ${seed}; repeat: npm run chaos -- --minutes ${minutes} --seed ${seed} --load ${load}`,
  );
}

/** The first SIGTERM ends the run early, with its summary. */
function endSignal(): AbortSignal {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
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
