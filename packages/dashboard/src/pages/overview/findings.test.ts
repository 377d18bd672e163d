import { expect, it } from "vitest";
import { findingsOf, type Health } from "./findings.ts";

const NO_PROBLEMS = {
  instances: 0,
  dead_letters: 0,
  dead_letter_instances: 0,
  retrying: 0,
  retrying_instances: 0,
  stuck: 0,
  errors: 0,
};
const usage = (calls: number, errors: number) =>
  ({ rows: [], before: null, total: { calls, errors } }) as unknown as NonNullable<Health["usage"]>;
const texts = (health: Health) => findingsOf(health).map(({ text }) => text);

it("finds nothing where nothing is known or wrong", () => {
  expect(texts({})).toEqual([]);
  expect(texts({ problems: NO_PROBLEMS, usage: usage(1000, 10), alerts: [], limits: [] })).toEqual([]);
});

it("lists what is broken before what may break", () => {
  const alert = { enabled: true, status: "firing", name: "Errors" };
  const health = {
    problems: {
      ...NO_PROBLEMS,
      retrying: 2,
      retrying_instances: 1,
      dead_letters: 1,
      dead_letter_instances: 1,
      stuck: 1,
    },
    alerts: [alert, { ...alert, enabled: false }],
    limits: [{ usedShare: 0.9 }, { usedShare: 1.2 }],
    deliveries: { totals: { failing: 3 } },
    usage: usage(20, 1),
  } as unknown as Health;
  expect(texts(health)).toEqual([
    "alert Errors is firing",
    "1 stuck instance",
    "1 dead letter in one instance",
    "3 deliveries failed",
    "1 limit used up",
    "2 items retrying in one instance",
    "1 limit nearly used up",
    "5.0% of the calls failed",
  ]);
});

it("does not take a few failed calls of very few for a problem", () => {
  expect(texts({ usage: usage(19, 19) })).toEqual([]);
  expect(texts({ usage: usage(1000, 49) })).toEqual([]);
});
