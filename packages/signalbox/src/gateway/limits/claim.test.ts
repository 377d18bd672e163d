import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Claim, type SharedNeed } from "./claim.ts";
import { Refusal } from "./limit-refusal.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** A call of which other nodes have what it needs: they have taken it, and not used it. */
function claimOfOthers() {
  const bucket = {
    waiting: 0,
    answeredBy: 1,
    reserved: 0,
    kind: "requests",
    used: () => 0,
    msUntilUsedIs: () => 0,
    canTake: () => false,
    take: () => undefined,
  };
  const rule = { limit: 10, kind: "requests", isSoft: false };
  const needs = [{ rule, bucket, amount: 1, isBounded: true, runsAlone: false, isForced: false }];
  return { bucket, claim: new Claim(needs as unknown as readonly SharedNeed[], 1) };
}

it("waits for other nodes for three seconds, and is refused then", async () => {
  const { claim } = claimOfOthers();
  for (let ms = 0; ms < 3000; ms += 100) {
    vi.advanceTimersByTime(100);
    claim.decide(0);
  }
  expect(claim.isWaiting).toBe(true);
  vi.advanceTimersByTime(100);
  claim.decide(0);
  expect(await claim.decided).toBeInstanceOf(Refusal);
});

it("waits on after a pause of the process, which is no time that the other nodes had", async () => {
  const { claim, bucket } = claimOfOthers();
  vi.advanceTimersByTime(10_000);
  claim.decide(0);
  expect(claim.isWaiting).toBe(true);
  bucket.canTake = () => true;
  claim.decide(0);
  expect(await claim.decided).toBeNull();
});
