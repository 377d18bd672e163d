/** A short run with every kind of fault. `npm run chaos` makes longer ones. */
import { expect, it } from "vitest";
import { FAULT_KINDS } from "./faults.ts";
import { planEveryFault, randomSteps } from "./plan.ts";
import { NODES, runChaos } from "./run-chaos.ts";

const SEED = 14;
/** Longer than all faults of the run, and than a machine with many other processes may stop for. */
const MAX_STALE_MS = 120_000;

it("a plan depends on its seed only", () => {
  const plan = (seed: number) => randomSteps(seed, NODES).take(50).toArray();
  expect(plan(SEED)).toEqual(plan(SEED));
  expect(plan(SEED + 1)).not.toEqual(plan(SEED));
});

it("three nodes keep their promises through every kind of fault", { timeout: 1_800_000 }, async () => {
  const history = await runChaos({
    seed: SEED,
    plan: planEveryFault(SEED, NODES),
    maxStaleMs: MAX_STALE_MS,
  });
  expect(history.violations, `${String(history)}\n${JSON.stringify(history.counts, null, 2)}`).toBe(0);
  for (const kind of FAULT_KINDS) expect(history.counted(`fault: ${kind}`)).toBe(1);
});
