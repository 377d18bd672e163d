import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { CredentialEnds } from "./credential-ends.ts";

let now = 0;
let ends: CredentialEnds;
beforeEach(() => {
  vi.useFakeTimers();
  now = 1_000_000;
  ends = new CredentialEnds({ now: () => now });
});
afterEach(() => vi.useRealTimers());

function pass(ms: number): void {
  now += ms;
  vi.advanceTimersByTime(ms);
}

const never = (key: string) => ({ key, expiresAt: null });

it("calls each watch of an ended credential once, except stopped watches", () => {
  const [first, second, stopped, other] = [vi.fn(), vi.fn(), vi.fn(), vi.fn()];
  ends.watch([never("a")], first);
  ends.watch([never("a")], second);
  ends.watch([never("a")], stopped)();
  ends.watch([never("b")], other);
  ends.end("a");
  ends.end("a");
  expect([first, second, stopped, other].map((each) => each.mock.calls.length)).toEqual([1, 1, 0, 0]);
});

it("ends a watch of two credentials once, with the first that ends", () => {
  const onEnd = vi.fn();
  ends.watch([never("session"), never("token")], onEnd);
  ends.end("token");
  ends.end("session");
  expect(onEnd).toHaveBeenCalledOnce();
});

it("calls the remaining callbacks after one throws, and then throws the error", () => {
  const onEnd = vi.fn();
  ends.watch([never("a")], () => {
    throw new Error("no");
  });
  ends.watch([never("a")], onEnd);
  expect(() => ends.end("a")).toThrow(AggregateError);
  expect(onEnd).toHaveBeenCalledOnce();
});

it("uses one timer for all credentials, and none if no credential can expire", () => {
  const stop = ends.watch([never("a")], vi.fn());
  expect(vi.getTimerCount()).toBe(0);
  const stops = Array.from({ length: 100 }, (_, n) =>
    ends.watch([{ key: `t${n}`, expiresAt: now + 5000 + n }], vi.fn()),
  );
  expect(vi.getTimerCount()).toBe(1);
  for (const each of [stop, ...stops]) each();
  pass(1000);
  expect(vi.getTimerCount()).toBe(0);
});

it("ends each credential at its expiry time", () => {
  const [soon, late] = [vi.fn(), vi.fn()];
  ends.watch([{ key: "late", expiresAt: now + 90_000 }], late);
  ends.watch([{ key: "soon", expiresAt: now + 10_000 }], soon);
  pass(9999);
  expect(soon).not.toHaveBeenCalled();
  pass(1);
  expect([soon.mock.calls.length, late.mock.calls.length]).toEqual([1, 0]);
  pass(80_000);
  expect(late).toHaveBeenCalledOnce();
  expect(vi.getTimerCount()).toBe(0);
});

it("ends a credential within a second after the clock is set past its expiry", () => {
  const onEnd = vi.fn();
  ends.watch([{ key: "a", expiresAt: now + 86_400_000 }], onEnd);
  now += 86_400_000;
  vi.advanceTimersByTime(1000);
  expect(onEnd).toHaveBeenCalledOnce();
});

it("ends a credential at its changed expiry, earlier, later or never", () => {
  const [earlier, later, unlimited] = [vi.fn(), vi.fn(), vi.fn()];
  ends.watch([{ key: "a", expiresAt: null }], earlier);
  ends.watch([{ key: "b", expiresAt: now + 1000 }], later);
  ends.watch([{ key: "c", expiresAt: now + 1000 }], unlimited);
  ends.reschedule("a", now + 500);
  ends.reschedule("b", now + 3000);
  ends.reschedule("c", null);
  ends.reschedule("unknown", now);
  pass(2000);
  expect([earlier, later, unlimited].map((each) => each.mock.calls.length)).toEqual([1, 0, 0]);
  pass(2000);
  expect([later, unlimited].map((each) => each.mock.calls.length)).toEqual([1, 0]);
});
