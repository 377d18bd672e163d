import { setImmediate as nextIteration } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LoopShare } from "../../core/loop-share.ts";
import { createLogger } from "../../telemetry/logger.ts";
import type { Instance } from "./instance.ts";
import type { DueEntry, DueSelection } from "./instance-catalog.ts";
import { keyOf } from "./instance-ref.ts";
import { Waker } from "./waker.ts";

/** A catalog and a directory in memory: woken instances are busy until the test ends their work. */
let rows: DueEntry[];
let inMemory: Map<string, Instance>;
let woken: string[];
let reads: string[];
let putAway: string[];
let room: number;
/** Time that the event loop has spent. */
let spentMs: number;
/** What a wake takes of it. */
let wakeMs: number;
let waker: Waker;

beforeEach(() => {
  // Each wake is a step of the real event loop.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
  rows = [];
  inMemory = new Map();
  woken = [];
  reads = [];
  putAway = [];
  room = Number.POSITIVE_INFINITY;
  spentMs = 0;
  wakeMs = 0;
});
afterEach(async () => {
  await waker.stop();
  vi.useRealTimers();
});

function create(maxBusy: number, catalogFails: () => boolean = () => false): Waker {
  waker = new Waker({
    catalog: {
      flush: async () => {
        if (catalogFails()) throw new Error("no catalog");
      },
      due: async (selection, now, limit) => {
        reads.push(selection.agent);
        return select(rows, selection, now).slice(0, limit);
      },
      nextDueAfter: async (agent, now) => {
        const times = rows.filter((row) => row.agent === agent && row.nextDueAt > now);
        return times.length === 0 ? null : Math.min(...times.map(({ nextDueAt }) => nextDueAt));
      },
    },
    clock: { now: () => Date.now() },
    logger: createLogger({ level: "silent", isPretty: false }),
    share: new LoopShare(2, () => spentMs),
    agents: () => ["a", "b"],
    maxBusy,
    isInMemory: (ref) => inMemory.has(keyOf(ref)),
    wake: (ref) => {
      if (inMemory.size >= room) return null;
      const instance = { key: keyOf(ref), ref, started: Promise.resolve() } as unknown as Instance;
      spentMs += wakeMs;
      inMemory.set(instance.key, instance);
      woken.push(instance.key);
      return instance;
    },
    putAway: ({ key }) => void putAway.push(key),
  });
  return waker;
}

/** As the catalog does it: in the order of time, after the position. */
const select = (all: readonly DueEntry[], selection: DueSelection, now: number): DueEntry[] => {
  const { agent, account, without, after } = selection;
  const from = after === undefined ? 0 : all.findIndex((one) => one === after) + 1;
  const isOf = (one: DueEntry) => (account === null ? !without.has(one.account) : one.account === account);
  return all.slice(from).filter((one) => one.agent === agent && one.nextDueAt <= now && isOf(one));
};

const row = (agent: string, name: string, nextDueAt = 0, account = "x"): DueEntry => ({
  account,
  agent,
  name,
  nextDueAt,
});
/** Its work is done and the catalog knows. */
const finish = (key: string) => {
  const instance = inMemory.get(key) as Instance;
  rows = rows.filter((entry) => keyOf(entry) !== key);
  waker.onIdle(instance);
  inMemory.delete(key);
  waker.onLeave(instance, null, null);
};
/** It cannot start; its work stays due. */
const fail = (key: string, failure: "own" | "storage" = "own") => {
  const instance = inMemory.get(key) as Instance;
  inMemory.delete(key);
  waker.onLeave(instance, Date.now() + (failure === "own" ? 10_000 : 1000), failure);
};
/** Moves the clock, and lets the event loop do what follows from it. */
const advance = async (ms: number) => {
  await vi.advanceTimersByTimeAsync(ms);
  for (let i = 0; i < 5; i++) await nextIteration();
};
const settle = () => advance(0);

it("wakes all due instances, a few at a time, and agents take turns", async () => {
  rows = [
    ...Array.from({ length: 250 }, (_, i) => row("a", `a${i}`)),
    ...Array.from({ length: 30 }, (_, i) => row("b", `b${i}`)),
    row("gone", "g"),
  ];
  create(10).start();
  await settle();
  // An account that is alone has two thirds.
  expect(woken).toHaveLength(7);
  for (let i = 0; i < woken.length; i++) {
    finish(woken[i] ?? "");
    await settle();
  }
  expect(new Set(woken).size).toBe(280);
  expect(woken.indexOf("x/b/b0")).toBeLessThan(10);
  expect(reads).not.toContain("gone");
});

it("an account waits for a page of another's work, and not for all of it", async () => {
  rows = [
    ...Array.from({ length: 300 }, (_, i) => row("a", `a${i}`)),
    row("a", "late", 1, "y"),
    ...Array.from({ length: 3 }, (_, i) => row("a", `later${i}`, 2)),
  ];
  create(1000).start();
  await settle();
  while (woken.length < rows.length) await settle();
  expect(woken.indexOf("y/a/late")).toBe(100);
  expect(new Set(woken).size).toBe(304);
});

it("thousands that have failed and are left alone are read once in a scan, page by page", async () => {
  rows = Array.from({ length: 1000 }, (_, i) => row("a", `a${i}`));
  create(3000).start();
  while (woken.length < rows.length) await settle();
  for (const key of woken) fail(key);
  reads.length = 0;
  waker.start();
  await settle();
  // Ten pages, what is behind them, and the common lane besides.
  expect(reads.filter((agent) => agent === "a").length).toBeLessThan(15);
  expect(woken).toHaveLength(1000);
});

it("accounts that are due alternately take turns, and all are woken once", async () => {
  rows = Array.from({ length: 900 }, (_, i) => row("a", `a${i}`, 0, ["x", "y", "z"][i % 3]));
  create(3000).start();
  while (woken.length < rows.length) await settle();
  expect(new Set(woken).size).toBe(900);
});

it("an account whose instances stay busy leaves room for others, also for what becomes due later", async () => {
  rows = Array.from({ length: 50 }, (_, i) => row("a", `a${i}`));
  create(3).start();
  await settle();
  expect(woken).toEqual(["x/a/a0", "x/a/a1"]);
  rows.push(row("a", "other", Date.now(), "y"));
  await advance(1100);
  expect(woken).toEqual(["x/a/a0", "x/a/a1", "y/a/other"]);
  finish("y/a/other");
  for (let i = 0; i < woken.length; i++) {
    if (inMemory.has(woken[i] ?? "")) finish(woken[i] ?? "");
    await settle();
  }
  expect(new Set(woken).size).toBe(51);
});

it("however many instances are due at once, the event loop has its turn after some milliseconds", async () => {
  rows = Array.from({ length: 500 }, (_, i) => row("a", `a${i}`));
  wakeMs = 1;
  create(1000).start();
  vi.advanceTimersByTime(0);
  let longest = 0;
  while (woken.length < 500) {
    const before = spentMs;
    await nextIteration();
    longest = Math.max(longest, spentMs - before);
  }
  expect(longest).toBeLessThanOrEqual(2);
});

it("instances that another scan has found are bounded by the same time", async () => {
  wakeMs = 1;
  create(1000);
  const found = Array.from({ length: 200 }, (_, i) => row("a", `a${i}`));
  const all = waker.wakeAll({ read: async (selection) => select(found, selection, 0).slice(0, 100) });
  let longest = 0;
  while (woken.length < 200) {
    const before = spentMs;
    await nextIteration();
    longest = Math.max(longest, spentMs - before);
  }
  await all;
  expect(longest).toBeLessThanOrEqual(2);
});

it("an instance that has done its work leaves memory if others are to be woken", async () => {
  rows = ["one", "two", "three"].map((name) => row("a", name));
  create(2).start();
  await settle();
  expect(woken).toEqual(["x/a/one", "x/a/two"]);
  const one = inMemory.get("x/a/one") as Instance;
  waker.onIdle(one);
  // Idle again, after an event: it has been put away once for the work for which it was woken.
  waker.onIdle(one);
  expect(putAway).toEqual(["x/a/one"]);
  await settle();
  expect(woken).toEqual(["x/a/one", "x/a/two", "x/a/three"]);
  await waker.stop();
  finish("x/a/two");
  finish("x/a/three");
  expect(putAway).toEqual(["x/a/one"]);
});

it("the same for an instance that another scan has found", async () => {
  create(1);
  const found = ["one", "two"].map((name) => row("a", name));
  const all = waker.wakeAll({ read: async (selection) => select(found, selection, 0) });
  await settle();
  finish("x/a/one");
  await all;
  finish("x/a/two");
  expect(putAway).toEqual(["x/a/one"]);
});

it("waits while there is no room, reads the work of others once a second, and continues when an instance leaves memory", async () => {
  rows = [row("a", "one"), row("a", "two")];
  room = 1;
  create(10).start();
  await advance(60_000);
  expect(woken).toEqual(["x/a/one"]);
  expect(reads.length).toBeLessThanOrEqual(2 + 62);
  finish("x/a/one");
  await settle();
  expect(woken).toEqual(["x/a/one", "x/a/two"]);
});

it("wakes a failing instance at increasing intervals without delaying the others", async () => {
  rows = [row("a", "bad"), row("a", "good")];
  create(1).start();
  await settle();
  fail("x/a/bad");
  await settle();
  finish("x/a/good");
  expect(woken).toEqual(["x/a/bad", "x/a/good"]);
  const times: number[] = [];
  const start = Date.now();
  for (let i = 0; i < 4; i++) {
    const count = woken.length;
    while (woken.length === count) await advance(1000);
    times.push(Math.round((Date.now() - start) / 1000));
    fail("x/a/bad");
    // Other due work does not wake it earlier.
    waker.wakeBy(Date.now());
  }
  expect(times).toEqual([10, 30, 70, 150]);
});

it("does not make an instance wait longer and longer because the storage of all is unavailable", async () => {
  rows = [row("a", "one")];
  create(1).start();
  await settle();
  for (let i = 1; i <= 5; i++) {
    fail("x/a/one", "storage");
    await advance(1000);
    expect(woken).toHaveLength(1 + i);
  }
});

it("retries after a failed scan, and waits until work is due", async () => {
  let isBroken = true;
  rows = [row("a", "later", Date.now() + 5000)];
  create(1, () => isBroken).start();
  await advance(2500);
  isBroken = false;
  await advance(1000);
  const scans = reads.length;
  expect(woken).toEqual([]);
  await advance(1400);
  expect(reads).toHaveLength(scans);
  await advance(100);
  expect(woken).toEqual(["x/a/later"]);
});

it("stops while it waits for room", async () => {
  rows = [row("a", "one"), row("a", "two")];
  create(1).start();
  await settle();
  await waker.stop();
  finish("x/a/one");
  await advance(60_000);
  expect(woken).toEqual(["x/a/one"]);
});

it("scans at once when it is started again, also if the clock was set past the time of the next scan", async () => {
  rows = [row("a", "later", Date.now() + 3_600_000)];
  create(1).start();
  await settle();
  vi.setSystemTime(Date.now() + 7_200_000);
  await settle();
  expect(woken).toEqual([]);
  waker.start();
  await settle();
  expect(woken).toEqual(["x/a/later"]);
});

it("finds due work that was not reported within a minute", async () => {
  create(1).start();
  await settle();
  rows = [row("a", "forgotten")];
  await advance(60_001);
  expect(woken).toEqual(["x/a/forgotten"]);
});
