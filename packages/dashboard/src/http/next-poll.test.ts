import { expect, it } from "vitest";
import { nextPollAt } from "./next-poll.ts";

it("repeats a request that is faster than its interval with the interval", () => {
  expect(nextPollAt(1000, 1200, 2500)).toBe(1200);
});

it("repeats a request that takes longer than its interval after ten times its duration", () => {
  expect(nextPollAt(1000, 5000, 2500)).toBe(45_000);
});
