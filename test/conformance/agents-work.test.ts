/** Queue, dead letters and schedules: decisions section 5 (queue). */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const MODULE = join(import.meta.dirname, "../fixtures/work-agents.ts");
const QUICK = { retry: { maxAttempts: 3, baseDelayMs: 1, maxDelayMs: 2 } };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [MODULE] } } });
});
afterAll(() => server.stop());

async function call(name: string, method: string, ...args: unknown[]) {
  const { body } = await server.api("POST", `/agents/worker/${name}/rpc/${method}`, args);
  if (body.success !== true) throw new Error(body.errors[0].message);
  return body.result;
}

const doneOf = (name: string, count: number): Promise<string[]> =>
  waitUntil(
    () => call(name, "done") as Promise<string[]>,
    (done) => done.length >= count,
  );

describe("the queue", () => {
  it("items run first in, first out", async () => {
    await call("fifo", "enqueue", ["a", "wait b", "c", "d"]);
    expect(await doneOf("fifo", 4)).toEqual(["a#1", "wait b#1", "c#1", "d#1"]);
    expect(
      await waitUntil(
        () => call("fifo", "pending"),
        (items) => items.length === 0,
      ),
    ).toEqual([]);
  });

  it("a failed item is retried and does not block the items after it", async () => {
    await call("retry", "enqueue", ["once", "next"], QUICK);
    const done = await doneOf("retry", 2);
    expect(done).toEqual(expect.arrayContaining(["once#2", "next#1"]));
    // The failed attempt was rolled back.
    expect(done).not.toContain("once#1");
  });

  it("an item becomes a dead letter after its last attempt, the queue continues, and a dead letter can be replayed", async () => {
    const [id] = await call("poison", "enqueue", ["fail", "good"], QUICK);
    await doneOf("poison", 1);
    const letters = await waitUntil(
      () => call("poison", "deadLetters"),
      (all) => all.length === 1,
    );
    expect(letters[0]).toMatchObject({
      itemId: id,
      callback: "work",
      payload: { label: "fail" },
      attempts: 3,
      error: "Error: cannot do fail",
      origin: "queue",
    });
    expect(await call("poison", "done")).toEqual(["good#1"]);
    expect(await call("poison", "replay", letters[0].id)).toBe(true);
    expect(await call("poison", "replay", letters[0].id)).toBe(false);
    const again = await waitUntil(
      () => call("poison", "deadLetters"),
      (all) => all.length === 1 && all[0].id !== letters[0].id,
    );
    expect(again[0].attempts).toBe(3);
  });

  it("items queued by a failed turn are discarded", async () => {
    await expect(call("rolled", "enqueueThenFail", "x")).rejects.toThrow("changed my mind");
    expect(await call("rolled", "pending")).toEqual([]);
    await call("rolled", "enqueue", ["y"]);
    expect(await doneOf("rolled", 1)).toEqual(["y#1"]);
  });

  it("waiting items are listed, found and removed, and an item with the same id is replaced", async () => {
    // Retry delays keep the items waiting. They are a random part of their bound, so that an hour could be a moment.
    const slow = { retry: { maxAttempts: 5, baseDelayMs: 1e13, maxDelayMs: 1e13 } };
    await call("list", "enqueue", ["fail one"], { ...slow, id: "k1" });
    await call("list", "enqueue", ["fail two"], { ...slow, id: "k2" });
    const waiting = await waitUntil(
      () => call("list", "pending"),
      (items) => items.length === 2 && items.every((item: { attempts: number }) => item.attempts === 1),
    );
    expect(waiting.map((item: { id: string }) => item.id)).toEqual(["k1", "k2"]);
    expect(await call("list", "matching", "fail two")).toMatchObject([
      { id: "k2", lastError: "Error: cannot do fail two" },
    ]);
    await call("list", "enqueue", ["good"], { id: "k1" });
    expect(await doneOf("list", 1)).toEqual(["good#1"]);
    expect(await call("list", "remove", "k2")).toBe(true);
    expect(await call("list", "remove", "k2")).toBe(false);
    expect(await call("list", "removeAll")).toBe(0);
  });

  it("methods that are not the agent's own and invalid options are refused", async () => {
    await expect(call("bad", "badQueue", "nope")).rejects.toThrow('no method "nope"');
    await expect(call("bad", "badQueue", "setState")).rejects.toThrow('no method "setState"');
    await expect(call("bad", "enqueue", ["x"], { retry: { maxAttempts: 0 } })).rejects.toThrow("maxAttempts");
    await expect(
      call("bad", "enqueue", ["x"], { retry: { baseDelayMs: 10, maxDelayMs: 5 } }),
    ).rejects.toThrow("baseDelayMs");
    await expect(call("bad", "enqueue", ["x"], { id: "" })).rejects.toThrow("1 to 256");
  });
});

describe("schedules", () => {
  it("a schedule with a delay or a date runs once", async () => {
    const delayed = await call("plan", "plan", 0.02, "delayed");
    expect(delayed).toMatchObject({
      type: "delayed",
      delayInSeconds: 0.02,
      callback: "tick",
      payload: "delayed",
    });
    await call("plan", "plan", new Date(Date.now() + 10).toISOString(), "dated");
    expect((await doneOf("plan", 2)).toSorted()).toEqual(["tick dated", "tick delayed"]);
    expect(
      await waitUntil(
        () => call("plan", "plans"),
        (plans) => plans.length === 0,
      ),
    ).toEqual([]);
  });

  it("a schedule with an interval repeats until it is cancelled", async () => {
    const { id } = await call("every", "every", 0.02, "beat");
    await doneOf("every", 3);
    expect(await call("every", "cancel", id)).toBe(true);
    expect(await call("every", "cancel", id)).toBe(false);
    const count = (await call("every", "done")).length;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(await call("every", "done")).toHaveLength(count);
  });

  it("a cron schedule is due at the next matching time and exists once", async () => {
    const first = await call("cron", "plan", "30 4 * * *", "early");
    const again = await call("cron", "plan", "30 4 * * *", "early");
    expect(again.id).toBe(first.id);
    const due = new Date(first.time * 1000);
    expect([due.getUTCHours(), due.getUTCMinutes(), due.getTime() > Date.now()]).toEqual([4, 30, true]);
    expect(await call("cron", "plans")).toHaveLength(1);
  });

  it("invalid cron expressions, delays and dates are refused", async () => {
    await expect(call("cron", "plan", "every tuesday", "x")).rejects.toThrow("is not a cron expression");
    await expect(call("cron", "plan", "* * * * * * *", "x")).rejects.toThrow("is not a cron expression");
    await expect(call("cron", "plan", -1, "x")).rejects.toThrow("delay");
    await expect(call("cron", "plan", "2026-99-99", "x")).rejects.toThrow("date");
    await expect(call("cron", "every", 0, "x")).rejects.toThrow("interval");
  });

  it("a failing one-time schedule becomes a dead letter; a failing repeated schedule continues", async () => {
    await call("broken", "plan", 0, "broken", QUICK);
    const letters = await waitUntil(
      () => call("broken", "deadLetters"),
      (all) => all.length === 1,
    );
    expect(letters[0]).toMatchObject({ origin: "schedule", callback: "tick", error: "Error: tick failed" });
    expect(await call("broken", "plans")).toEqual([]);
  });

  it("schedules and queue items do not starve each other", async () => {
    await call(
      "fair",
      "enqueue",
      Array.from({ length: 30 }, (_, i) => `wait ${i}`),
    );
    await call("fair", "plan", 0, "between");
    const done = await waitUntil(
      () => call("fair", "done") as Promise<string[]>,
      (all) => all.includes("tick between") && all.includes("wait 29#1"),
    );
    expect(done.indexOf("tick between")).toBeLessThan(done.indexOf("wait 29#1"));
  });
});

describe("over restarts", () => {
  it("schedules created in onStart are not duplicated, missed schedules run once, and the queue continues", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-work-"));
    const file = { agents: { modules: [MODULE] } };
    let now = Date.now();
    const clock = { now: () => now };
    const start = () => startTestServer({ file, dataDir, clock });
    const callOn = async (on: TestServer, path: string, ...args: unknown[]) =>
      (await on.api("POST", `/agents/${path}`, args)).body.result;

    let current = await start();
    expect(await callOn(current, "starter/s/rpc/plans")).toHaveLength(3);
    await callOn(current, "worker/w/rpc/plan", "0 * * * *", "hourly");
    await callOn(current, "worker/w/rpc/enqueue", ["fail later"], {
      retry: { maxAttempts: 2, baseDelayMs: 3_600_000, maxDelayMs: 3_600_000 },
    });
    await waitUntil(
      () => callOn(current, "worker/w/rpc/pending"),
      (items) => items[0]?.attempts === 1,
    );
    await current.stop();

    // Ten hours later, without any access to the instance.
    now += 36_000_000;
    current = await start();
    const again = current;
    const shown = await waitUntil(
      async () => (await again.api("GET", "/accounts/default/agents/worker/instances/w")).body.result,
      (detail) => detail.dead_letter_count === 1,
    );
    expect(shown.queue_count).toBe(0);
    const done = await waitUntil(
      () => callOn(again, "worker/w/rpc/done"),
      (all) => all.length >= 1,
    );
    expect(done).toEqual(["tick hourly"]);
    const [plan] = await callOn(again, "worker/w/rpc/plans");
    expect(plan.time * 1000).toBeGreaterThan(now);
    expect(await callOn(again, "starter/s/rpc/plans")).toHaveLength(3);
    await again.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  it("an item that kills the process becomes a dead letter after its last attempt", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-exit-"));
    const args = ["--data-dir", dataDir, "--agents", MODULE];
    const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, ALLOW_EXIT: "yes" };
    let crashes = 0;
    let process = await startServerProcess(args, { env });
    const post = (path: string, body: unknown) =>
      fetch(process.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    await post("/agents/worker/x/rpc/enqueue", [
      ["exit"],
      { retry: { ...QUICK.retry, maxAttempts: 2 } },
    ]).catch(() => undefined);
    for (;;) {
      const answer = await post("/agents/worker/x/rpc/deadLetters", []).catch(() => null);
      const body = (await answer?.json().catch(() => null)) as { result: { error: string }[] } | null;
      if (body?.result.length === 1) {
        expect(body.result[0]?.error).toContain("the process ended");
        break;
      }
      if (process.child.exitCode === null && process.child.signalCode === null) continue;
      crashes += 1;
      expect(crashes).toBeLessThanOrEqual(2);
      process = await startServerProcess(args, { env }).catch(() => startServerProcess(args, { env }));
    }
    await process.end("SIGTERM");
    await rm(dataDir, { recursive: true, force: true });
  });
});
