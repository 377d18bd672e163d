/**
 * `npm run chaos -- --minutes n [--seed s]`: runs a cluster under load and random faults. Prints a summary. If a rule is broken, it prints the
 * history with the seed, and exits with 1. See docs/decisions/0160.
 */
import { parseArgs } from "node:util";
import { planFaults } from "../test/chaos/plan.ts";
import { NODES, runChaos } from "../test/chaos/run-chaos.ts";

const USAGE = "usage: npm run chaos -- --minutes <n> [--seed <s>]";

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { minutes: { type: "string", default: "2" }, seed: { type: "string" } },
  });
  const minutes = Number(values.minutes);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  if (!(minutes > 0) || !Number.isInteger(seed)) {
    console.error(USAGE);
    return 2;
  }
  const plan = planFaults({ seed, nodes: NODES, durationMs: minutes * 60_000 });
  console.log(`seed ${seed}, ${minutes} min, ${plan.flat().length} faults`);
  const startedAt = performance.now();
  const history = await runChaos({
    seed,
    plan,
    onProgress: (text) =>
      console.log(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(6)} s  ${text}`),
  });
  console.log("");
  for (const [name, count] of Object.entries(history.counts))
    console.log(`${String(count).padStart(8)}  ${name}`);
  console.log(`${String(history.violations).padStart(8)}  violations`);
  if (history.violations === 0) return 0;
  console.error(
    `\n${String(history)}\n\nbroken with seed ${seed}; repeat: npm run chaos -- --minutes ${minutes} --seed ${seed}`,
  );
  return 1;
}
