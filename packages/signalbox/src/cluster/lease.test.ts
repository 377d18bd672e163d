import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Lease } from "./lease.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const MAX_STALE_MS = 30_000;
const TIMES = { maxStaleMs: MAX_STALE_MS, deadAfterMs: 2500 };

/** Whether the check lets a request go on, at once or after `event`. */
async function outcome(
  lease: Lease,
  event: () => void | Promise<unknown> = () => undefined,
): Promise<string> {
  const check = lease.check();
  if (check === null) return "at once";
  let result = "waits";
  check.then(
    () => (result = "goes on"),
    (error: { id: string }) => (result = error.id),
  );
  await event();
  await vi.advanceTimersByTimeAsync(0);
  return result;
}

function renewed(): Lease {
  const lease = new Lease(TIMES);
  lease.renew(performance.now());
  return lease;
}

it("lets requests go on for two seconds after a heartbeat was sent", async () => {
  const lease = renewed();
  vi.advanceTimersByTime(2000);
  expect(await outcome(lease)).toBe("at once");
  vi.advanceTimersByTime(1);
  expect(await outcome(lease)).toBe("waits");
});

it("counts from the time at which the heartbeat was sent, not answered", async () => {
  const lease = new Lease(TIMES);
  const sentAt = performance.now();
  vi.advanceTimersByTime(1900);
  lease.renew(sentAt);
  expect(lease.isFresh).toBe(true);
  vi.advanceTimersByTime(101);
  expect(lease.isFresh).toBe(false);
});

it("a request that waits goes on with the next heartbeat", async () => {
  const lease = renewed();
  vi.advanceTimersByTime(10_000);
  expect(await outcome(lease, () => lease.renew(performance.now()))).toBe("goes on");
});

it("a heartbeat that was sent before the pause renews nothing", async () => {
  const lease = renewed();
  const sentAt = performance.now() + 1;
  vi.advanceTimersByTime(10_000);
  expect(await outcome(lease, () => lease.renew(sentAt))).toBe("waits");
});

it("notices a pause that only the wall clock shows", async () => {
  const lease = renewed();
  vi.setSystemTime(Date.now() + 5000);
  expect(lease.isFresh).toBe(false);
});

it("a wall clock that is set back makes nothing younger", async () => {
  const lease = renewed();
  vi.advanceTimersByTime(5000);
  vi.setSystemTime(Date.now() - 3_600_000);
  expect(lease.isFresh).toBe(false);
});

it("without a database, memory is used until it is too old", async () => {
  const lease = renewed();
  vi.advanceTimersByTime(3000);
  expect(await outcome(lease, () => lease.reportUnreachable())).toBe("goes on");
  expect(await outcome(lease)).toBe("at once");
  vi.advanceTimersByTime(MAX_STALE_MS);
  expect(await outcome(lease)).toBe("node_stale");
  lease.renew(performance.now());
  expect(await outcome(lease)).toBe("at once");
});

it("a node is cut off when its lease is over and an attempt to reach the database has failed", () => {
  const lease = renewed();
  lease.reportUnreachable();
  vi.advanceTimersByTime(2000);
  expect(lease.cutOffMs).toBe(0);
  vi.advanceTimersByTime(1000);
  expect(lease.cutOffMs).toBe(3000);
  // It can be read, although it cannot store heartbeats.
  lease.recordRead(performance.now());
  expect(lease.cutOffMs).toBe(0);
  vi.advanceTimersByTime(3000);
  expect(lease.cutOffMs).toBe(3000);
  // The node has joined again, and has had no heartbeat yet.
  lease.reportReachable();
  expect(lease.cutOffMs).toBe(0);
  lease.renew(performance.now());
  // A pause of the process is no failure.
  vi.advanceTimersByTime(60_000);
  expect(lease.cutOffMs).toBe(0);
});

it("a node that was paused is not cut off: it may reach the database at once", () => {
  const lease = renewed();
  const now = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => now + 60_000);
  lease.reportUnreachable();
  expect([lease.isFresh, lease.cutOffMs]).toEqual([false, 0]);
  vi.restoreAllMocks();
});

it("a database that answers too slowly counts as unreachable", async () => {
  const lease = renewed();
  vi.advanceTimersByTime(3000);
  expect(await outcome(lease, () => vi.advanceTimersByTimeAsync(5000))).toBe("goes on");
  expect(await outcome(lease)).toBe("at once");
});

it("a read shows that memory is up to date, and begins no lease", async () => {
  const lease = renewed();
  vi.advanceTimersByTime(MAX_STALE_MS - 1);
  lease.recordRead(performance.now());
  vi.advanceTimersByTime(2000);
  expect([lease.isFresh, await outcome(lease)]).toEqual([false, "at once"]);
  vi.advanceTimersByTime(MAX_STALE_MS);
  expect(await outcome(lease)).toBe("node_stale");
});

it("a node that was declared dead has no lease, although its clocks stood still with the machine", async () => {
  const lease = renewed();
  const before = performance.now();
  lease.end();
  expect(await outcome(lease)).toBe("waits");
  // A heartbeat that was under way.
  lease.renew(before);
  expect(lease.isFresh).toBe(false);
  vi.advanceTimersByTime(1);
  expect(await outcome(lease, () => lease.renew(performance.now()))).toBe("goes on");
});

it("a node that has never read its settings serves nothing", async () => {
  const lease = new Lease(TIMES);
  expect(await outcome(lease, () => lease.reportUnreachable())).toBe("node_stale");
});
