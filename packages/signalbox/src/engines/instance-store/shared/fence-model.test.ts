/** Every order of the steps of two nodes. Each rule is needed: without it some order loses, doubles or mixes records. */
import { describe, expect, it } from "vitest";
import { APPEND, explore, type Rules, SAFE, type Step, TAKE_OVER } from "./fence-model.ts";

/** The first owner writes, makes a snapshot, is late, and takes the instance back. The other node claims twice, so that its first claim is deleted. */
const PLANS: readonly [readonly Step[], readonly Step[]] = [
  [...APPEND, ...APPEND, "snapshot", "delete", ...TAKE_OVER, ...APPEND],
  [...TAKE_OVER, ...APPEND, ...TAKE_OVER, "snapshot", "delete", ...APPEND],
];
const CALM = { cuts: 0, losses: 0 };
const CUT = { cuts: 1, losses: 0 };
const LOST = { cuts: 0, losses: 1 };

describe("the fence", () => {
  it.each([
    ["without faults", CALM],
    ["with a connection that is cut", CUT],
    ["with a server that loses its last commit", LOST],
  ])("keeps one history, %s", (_name, environment) => {
    const { states, violation } = explore(PLANS, SAFE, environment);
    expect(violation).toBeNull();
    expect(states).toBeGreaterThan(1000);
  });

  const mutants: [string, Partial<Rules>, typeof CALM][] = [
    ["the epoch is not checked", { checksEpoch: false }, LOST],
    ["the predecessor is not checked", { checksPredecessor: false }, LOST],
    ["the history is read before the claim", { readsBeforeClaim: true }, CALM],
    ["an unknown outcome is repeated blindly", { retriesBlindly: true }, CUT],
    ["records are deleted without grace", { hasGrace: false }, CALM],
  ];
  it.each(mutants)("breaks if %s", (_name, mutation, environment) => {
    expect(explore(PLANS, { ...SAFE, ...mutation }, environment).violation).not.toBeNull();
  });
});
