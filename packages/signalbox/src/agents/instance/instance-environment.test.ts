import { expect, it } from "vitest";
import { eventTimeoutMs } from "./instance-environment.ts";

it.each([
  [0, 30_000],
  [50, 50],
])("with a limit of turns of %i ms, turns that somebody waits for have %i ms", (turnTimeoutMs, expected) => {
  expect(eventTimeoutMs({ turnTimeoutMs, maxWaitingTurns: 1, maxStateBytes: 1 })).toBe(expected);
});
