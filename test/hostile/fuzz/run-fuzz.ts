/**
 * Runs a target on kept cases or on generated inputs until stopped. Inputs depend only on the seed and their number.
 * An input that fails among others is repeated alone on a new arena, so that one input is reported if one is enough.
 * See docs/decisions/0095.
 */
import { createRandom } from "../../support/ledger/random.ts";
import type { Find, KeptCase } from "./cases.ts";
import type { Arena, FuzzTarget } from "./fuzz-target.ts";

export interface FuzzResult {
  readonly tried: number;
  readonly find: Find | null;
}

/** Spreads neighbouring numbers over the generator's states: 2^32 divided by the golden ratio. */
const STRIDE = 0x9e3779b9;

export function inputOf(target: FuzzTarget, seed: number, number: number): unknown {
  return target.generate(createRandom((seed + Math.imul(number, STRIDE)) >>> 0));
}

export async function fuzz(
  target: FuzzTarget,
  seed: number,
  isOver: (tried: number) => boolean,
): Promise<FuzzResult> {
  const arena = await target.open();
  let tried = 0;
  try {
    while (!isOver(tried)) {
      const inputs = Array.from({ length: target.width }, (_, i) => inputOf(target, seed, tried + i));
      tried += inputs.length;
      const find = await attemptAll(arena, inputs);
      if (find !== null) return { tried, find: await narrow(target, inputs, find) };
    }
    return { tried, find: null };
  } finally {
    await arena.close();
  }
}

/** Runs one input on a new arena; null if all checks pass. */
async function attemptAlone(target: FuzzTarget, input: unknown): Promise<Find | null> {
  const arena = await target.open();
  try {
    return await attemptAll(arena, [input]);
  } finally {
    await arena.close();
  }
}

/** Runs kept cases in sequence on one arena, which is faster than one arena each; returns those that fail again. */
export async function attemptEach(target: FuzzTarget, cases: readonly KeptCase[]): Promise<string[]> {
  const arena = await target.open();
  const broken: string[] = [];
  try {
    for (const { file, input } of cases) {
      const find = await attemptAll(arena, [input]);
      if (find !== null) broken.push(`${file}: ${find.problem}`);
    }
    return broken;
  } finally {
    await arena.close();
  }
}

async function attemptAll(arena: Arena, inputs: readonly unknown[]): Promise<Find | null> {
  const outcomes = await Promise.allSettled(inputs.map((input) => arena.attempt(input)));
  const failed = outcomes.findIndex((outcome) => outcome.status === "rejected");
  if (failed !== -1) {
    const { reason } = outcomes[failed] as PromiseRejectedResult;
    return { input: inputs[failed], problem: describe(reason) };
  }
  try {
    await arena.check();
    return null;
  } catch (error) {
    return { input: inputs.length === 1 ? inputs[0] : inputs, problem: describe(error) };
  }
}

async function narrow(target: FuzzTarget, inputs: readonly unknown[], find: Find): Promise<Find> {
  for (const input of inputs) {
    const alone = await attemptAlone(target, input);
    if (alone !== null) return alone;
  }
  return { ...find, problem: `${find.problem} (not from one input alone on a fresh server)` };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
