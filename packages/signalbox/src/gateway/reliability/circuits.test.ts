import { beforeEach, expect, it } from "vitest";
import { Circuits, type CircuitTarget } from "./circuits.ts";

let now = 0;
let circuits: Circuits;
beforeEach(() => {
  now = 1_000_000;
  circuits = new Circuits({ now: () => now });
});

const target: CircuitTarget = { accountId: "a", gatewayId: "g", provider: "openai", model: "m", keyId: null };
const fail = (count: number, of = target) => {
  for (let i = 0; i < count; i++) circuits.failed(of);
};
const state = () => circuits.list("a", "g")[0]?.state ?? "closed";

it("opens after five failures in a row, and not after four", () => {
  fail(4);
  expect(circuits.admits(target)).toBe(true);
  fail(1);
  expect(circuits.admits(target)).toBe(false);
  expect(state()).toBe("open");
});

it("a success in between starts the row again, but half of twenty calls within the window opens it", () => {
  for (let i = 0; i < 9; i++) {
    fail(1);
    circuits.succeeded(target);
  }
  expect(circuits.admits(target)).toBe(true);
  fail(1);
  circuits.succeeded(target);
  fail(1);
  expect(circuits.admits(target)).toBe(false);
});

it("failures that are further apart than the window do not add up to a share", () => {
  for (let i = 0; i < 30; i++) {
    fail(1);
    circuits.succeeded(target);
    now += 30_000;
  }
  expect(state()).toBe("closed");
});

it("lets one probe through after the cool-down; its result closes or reopens the circuit", () => {
  fail(5);
  now += 29_999;
  expect(circuits.admits(target)).toBe(false);
  now += 1;
  expect(state()).toBe("half_open");
  expect([circuits.admits(target), circuits.admits(target)]).toEqual([true, false]);
  fail(1);
  expect(state()).toBe("open");
  now += 30_000;
  expect(circuits.admits(target)).toBe(true);
  circuits.succeeded(target);
  expect(circuits.isEmpty).toBe(true);
  expect(circuits.admits(target)).toBe(true);
});

it("a probe that never reports frees its place after the cool-down", () => {
  fail(5);
  now += 30_000;
  expect(circuits.admits(target)).toBe(true);
  now += 30_000;
  expect(circuits.admits(target)).toBe(true);
});

it("a late failure of a call from before does not prolong the cool-down", () => {
  fail(5);
  now += 20_000;
  fail(3);
  now += 10_000;
  expect(circuits.admits(target)).toBe(true);
});

it("targets of other gateways, models and keys are apart", () => {
  fail(5);
  expect(circuits.admits({ ...target, gatewayId: "h" })).toBe(true);
  expect(circuits.admits({ ...target, model: "n" })).toBe(true);
  expect(circuits.admits({ ...target, keyId: "k" })).toBe(true);
  circuits.forget("a", "g");
  expect(circuits.isEmpty).toBe(true);
});

it("the number of entries is bounded", () => {
  for (let i = 0; i < 10_050; i++) fail(1, { ...target, model: `m${i}` });
  expect(circuits.list("a", "g")).toHaveLength(10_000);
});

it("a 429 counts against a stored key, not against the callers' own keys", () => {
  const failure = {
    kind: "status",
    status: 429,
    reason: null,
    retryAfterMs: null,
    cause: undefined,
  } as const;
  for (let i = 0; i < 5; i++) {
    circuits.report(target, failure);
    circuits.report({ ...target, keyId: "k" }, failure);
  }
  expect(circuits.list("a", "g").map(({ target: { keyId } }) => keyId)).toEqual(["k"]);
});
