import { expect, it } from "vitest";
import { addTotals, totalsOfAgents } from "./problem-totals.ts";

const ref = (agent: string, name: string) => ({ account: "default", agent, name });
const letters = {
  instances: 2,
  deadLetters: 5,
  deadLetterInstances: 2,
  retrying: 0,
  retryingInstances: 0,
  errors: 1,
};

it("counts an instance once that is stuck and has dead letters, and one that is only stuck in addition", () => {
  const stuck = [ref("room", "a"), ref("room", "b"), ref("cart", "c")];
  const byAgent = totalsOfAgents([{ agent: "room", ...letters }], stuck, stuck.slice(1));
  const none = { dead_letters: 0, dead_letter_instances: 0, retrying: 0, retrying_instances: 0, errors: 0 };
  expect(byAgent).toEqual([
    { agent: "cart", ...none, instances: 1, stuck: 1 },
    { agent: "room", ...none, instances: 3, dead_letters: 5, dead_letter_instances: 2, stuck: 2, errors: 1 },
  ]);
  expect(addTotals(byAgent)).toEqual({
    ...none,
    instances: 4,
    dead_letters: 5,
    dead_letter_instances: 2,
    stuck: 3,
    errors: 1,
  });
});

it("is empty without problems", () => {
  expect(totalsOfAgents([], [], [])).toEqual([]);
  expect(addTotals([]).instances).toBe(0);
});
