import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Claim, type ClaimPart } from "./claim.ts";

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
  const parts = [{ rule, bucket, need: { amount: 1, isBounded: true }, isForced: false }];
  return { bucket, claim: new Claim(parts as unknown as readonly ClaimPart[], 1) };
}

it("waits for other nodes for three seconds, and is refused then", () => {
  const { claim } = claimOfOthers();
  for (let ms = 0; ms < 3000; ms += 100) {
    vi.advanceTimersByTime(100);
    claim.decide(0);
  }
  expect(claim.state).toBe("waiting");
  vi.advanceTimersByTime(100);
  claim.decide(0);
  expect(claim.state).toBe("refused");
});

it("waits on after a pause of the process, which is no time that the other nodes had", () => {
  const { claim, bucket } = claimOfOthers();
  vi.advanceTimersByTime(10_000);
  claim.decide(0);
  expect(claim.state).toBe("waiting");
  bucket.canTake = () => true;
  claim.decide(0);
  expect(claim.state).toBe("granted");
});
