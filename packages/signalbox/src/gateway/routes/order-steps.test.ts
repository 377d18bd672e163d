import { expect, it } from "vitest";
import { PriceTable } from "../limits/price-table.ts";
import type { CallOptions } from "../step/call-options.ts";
import type { Step } from "../step/step.ts";
import type { Gateway } from "../settings/gateway.ts";
import { orderSteps, sessionOf, shareOf } from "./order-steps.ts";
import { TargetLatencies } from "../reliability/target-latencies.ts";

const gateway = { accountId: "a", id: "g" } as Gateway;
const step = (model: string, weight = 1) =>
  ({
    provider: { slug: "openai" },
    model,
    maxOutputTokens: null,
    upstream: { body: { kind: "whole", bytes: Buffer.alloc(400) } },
    policy: { weight },
  }) as unknown as Step;
const steps = [step("a", 1), step("b", 3), step("c", 6)];
const latencies = new TargetLatencies();
const prices = new PriceTable({ openai: { a: { in: 5, out: 5 }, b: { in: 1, out: 1 } } });
const order = (options: CallOptions) =>
  orderSteps(steps, gateway, options, { prices, latencies }).map(({ model }) => model);

it("keeps the given order without a strategy, and numbers the steps as given with one", () => {
  expect(order({})).toEqual(["a", "b", "c"]);
  expect(order({ strategy: "fallback" })).toEqual(["a", "b", "c"]);
  const places = orderSteps(steps, gateway, { strategy: "least-cost" }, { prices, latencies });
  expect(places.map(({ model, place }) => [model, place])).toEqual([
    ["b", 1],
    ["a", 0],
    ["c", 2],
  ]);
});

it("least-latency puts targets without a measurement first, then the fastest", () => {
  latencies.add(gateway, step("a"), performance.now() - 50);
  latencies.add(gateway, step("b"), performance.now() - 5);
  expect(order({ strategy: "least-latency" })).toEqual(["c", "b", "a"]);
});

it("weights are shares of the first place: of random calls, and of sessions", () => {
  const count = (options: (i: number) => CallOptions) => {
    const firsts = { a: 0, b: 0, c: 0 };
    for (let i = 0; i < 10_000; i++) firsts[order(options(i))[0] as "a" | "b" | "c"] += 1;
    return firsts;
  };
  for (const firsts of [
    count(() => ({ strategy: "weighted" })),
    count((i) => ({ strategy: "sticky", sessionId: `s${i}` })),
  ]) {
    // Six standard deviations: a correct draw fails once in five hundred million runs.
    expect(Math.abs(firsts.a - 1000)).toBeLessThan(180);
    expect(Math.abs(firsts.b - 3000)).toBeLessThan(275);
    expect(Math.abs(firsts.c - 6000)).toBeLessThan(294);
  }
});

it("a session keeps its order, and keeps its target when another step is removed", () => {
  for (let i = 0; i < 200; i++) {
    const options: CallOptions = { strategy: "sticky", sessionId: `s${i}` };
    const [first, ...rest] = order(options);
    expect(order(options)).toEqual([first, ...rest]);
    // The last step is removed, so that the places of the others stay.
    const fewer = orderSteps(steps.slice(0, 2), gateway, options, { prices, latencies });
    if (first !== "c") expect(fewer[0]?.model).toBe(first);
  }
});

it("the session is the header, else the user in the metadata", () => {
  expect(sessionOf({ sessionId: "s", metadata: '{"user_id":"u"}' })).toBe("s");
  expect(sessionOf({ metadata: '{"user_id":7}' })).toBe("7");
  expect(sessionOf({ metadata: '{"user":"u"}' })).toBeNull();
  expect(sessionOf({})).toBeNull();
});

it("shares are in [0, 1) and depend on both texts", () => {
  expect(shareOf("a", "b")).toBe(shareOf("a", "b"));
  expect(shareOf("a", "b")).not.toBe(shareOf("a", "c"));
  expect(shareOf("x", "y")).toBeGreaterThanOrEqual(0);
  expect(shareOf("x", "y")).toBeLessThan(1);
});
