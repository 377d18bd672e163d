/** The queue, the threads and their failures, and the day files of the call log. */
import { mkdir, mkdtemp, readdir, rm, rmdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, it } from "vitest";
import { callRecord, DAY, FIRST_PAGE, GATEWAY, NOON } from "./call-log-fixture.ts";
import { dayPath } from "./day-files.ts";
import type { WriterOptions } from "./worker-messages.ts";
import { setVersionOfFile, versionOfFile, writeVersion1File } from "./version-1-fixture.ts";
import { startWorker } from "./worker-requests.ts";
import { SqliteCallLog, type SqliteCallLogOptions } from "./sqlite-call-log.ts";

/** The module that starts the thread otherwise. The address of a test file has a query. */
const OWNER = new URL("sqlite-call-log.ts", import.meta.url).href;

let folder: string;
let log: SqliteCallLog | undefined;
let errors: Error[];
let fatals: Error[];
let writers: Worker[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-calls-"));
  errors = [];
  fatals = [];
  writers = [];
});
afterEach(async () => {
  await log?.close().catch(() => undefined);
  log = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function open(options: Partial<SqliteCallLogOptions> = {}): Promise<SqliteCallLog> {
  log = await SqliteCallLog.open({
    folder,
    maxAgeDays: 3650,
    flushIntervalMs: 50,
    maxBodyBytes: 1000,
    maxTotalBytes: 1_000_000_000,
    maxQueuedCalls: 10_000,
    maxQueuedBytes: 64_000_000,
    onError: (error) => errors.push(error),
    onFatal: (error) => fatals.push(error),
    startWriter(writerOptions: WriterOptions) {
      const worker = startWorker("call-writer", OWNER, writerOptions);
      writers.push(worker);
      return worker;
    },
    ...options,
  });
  return log;
}

const days = async () => (await readdir(folder)).filter((name) => name.endsWith(".db"));
const total = async (calls: SqliteCallLog) => (await calls.list(GATEWAY, FIRST_PAGE)).total;

/** Resolves when the condition holds. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

it("writes rows after the flush interval without a read", async () => {
  const calls = await open();
  calls.record(callRecord());
  expect(calls.queuedCalls).toBe(1);
  await until(() => calls.queuedCalls === 0);
});

it("makes callers wait while too many calls are queued", async () => {
  const calls = await open({ maxQueuedCalls: 10, flushIntervalMs: 10 });
  for (let i = 0; i < 10; i++) {
    expect(calls.hasRoom).toBe(true);
    calls.record(callRecord());
  }
  expect(calls.hasRoom).toBe(false);
  await calls.whenRoom();
  expect(calls.hasRoom).toBe(true);
  expect(await total(calls)).toBe(10);
});

it("makes callers wait while too many bytes are queued", async () => {
  const calls = await open({ maxQueuedBytes: 2000, flushIntervalMs: 10 });
  calls.record(callRecord({ responseBody: Buffer.alloc(2000) }));
  expect(calls.hasRoom).toBe(false);
  await calls.whenRoom();
  expect(calls.hasRoom).toBe(true);
});

it("admits only as many waiting callers as rows fit", async () => {
  const calls = await open({ maxQueuedCalls: 2, flushIntervalMs: 10 });
  calls.record(callRecord());
  calls.record(callRecord());
  let mostQueued = 0;
  const caller = async () => {
    await calls.whenRoom();
    calls.record(callRecord());
    mostQueued = Math.max(mostQueued, calls.queuedCalls);
  };
  await Promise.all(Array.from({ length: 20 }, caller));
  expect(mostQueued).toBe(2);
  expect(await total(calls)).toBe(22);
});

it("cuts a body at the limit and marks it as incomplete", async () => {
  const calls = await open();
  const call = callRecord({ requestBody: Buffer.alloc(1001, "a"), responseBody: Buffer.alloc(1000, "b") });
  calls.record(call);
  expect(await calls.body(GATEWAY, call.id, "request")).toMatchObject({ isComplete: false });
  expect((await calls.body(GATEWAY, call.id, "request"))?.bytes.length).toBe(1000);
  expect(await calls.body(GATEWAY, call.id, "response")).toMatchObject({ isComplete: true });
});

it("refuses a record whose id is not a ULID", async () => {
  const calls = await open();
  expect(() => calls.record(callRecord({ id: "../x" }))).toThrow("must be a ULID");
});

it("cuts texts at the limits of their columns", async () => {
  const calls = await open();
  const call = callRecord({
    model: "m".repeat(10_000),
    userAgent: "u".repeat(10_000),
    path: "p".repeat(10_000),
  });
  calls.record(call);
  const row = await calls.get(GATEWAY, call.id);
  expect([row?.model.length, row?.userAgent.length, row?.path.length]).toEqual([256, 512, 2048]);
});

it("starts no thread before the first operation", async () => {
  const calls = await open();
  calls.setQuota(GATEWAY, { maxRows: 1, whenFull: "stop" });
  await calls.expire();
  expect(writers).toEqual([]);
  for (let i = 0; i < 2; i++) calls.record(callRecord());
  expect(await total(calls)).toBe(1);
  expect(writers).toHaveLength(1);
});

it("neither loses nor duplicates rows when the writer's thread dies", async () => {
  const calls = await open({ flushIntervalMs: 5 });
  const ids: string[] = [];
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 500; i++) {
      const call = callRecord({ createdAt: NOON });
      ids.push(call.id);
      calls.record(call);
    }
    await until(() => writers.length > round);
    // The thread is receiving, committing or reporting.
    if (round % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
    await writers.at(-1)?.terminate();
    // For the next writer, which must commit something before it is ended, too: two deaths without a commit are fatal.
    const next = callRecord({ createdAt: NOON });
    ids.push(next.id);
    calls.record(next);
    await until(() => calls.queuedCalls === 0);
  }
  expect(writers.length).toBe(5);
  expect(fatals).toEqual([]);
  expect(errors.length).toBe(4);
  const page = await calls.list(GATEWAY, { ...FIRST_PAGE, direction: "asc", limit: 5000 });
  expect(page.rows.map((row) => row.id)).toEqual(ids);
  const query = { accountId: "default", gatewayIds: null, from: 0, to: NOON * 2, groupBy: [] };
  expect(await calls.summarise(query)).toMatchObject([{ calls: ids.length }]);
});

it("keeps quotas when the writer's thread dies", async () => {
  const calls = await open();
  calls.setQuota(GATEWAY, { maxRows: 2, whenFull: "stop" });
  calls.record(callRecord());
  await until(() => writers.length === 1);
  await writers[0]?.terminate();
  await until(() => writers.length === 2);
  for (let i = 0; i < 5; i++) calls.record(callRecord());
  expect(await total(calls)).toBe(2);
});

it("reports a fatal error when the writer's thread dies twice without a commit", async () => {
  const calls = await open({ flushIntervalMs: 10_000 });
  calls.record(callRecord());
  await until(() => writers.length === 1);
  await writers[0]?.terminate();
  await until(() => writers.length === 2);
  await writers[1]?.terminate();
  await until(() => fatals.length === 1);
  expect(calls.hasRoom).toBe(false);
  await expect(calls.whenRoom()).rejects.toThrow("ended unexpectedly");
  await expect(total(calls)).rejects.toThrow("ended unexpectedly");
});

it("keeps the rows that fit into the queue while it cannot write, counts the others, and reports the failure once", async () => {
  const recoveries: number[] = [];
  const calls = await open({ maxQueuedCalls: 3, onRecovery: (dropped) => recoveries.push(dropped) });
  const obstacle = dayPath(folder, "2026-11-15");
  await mkdir(obstacle);
  for (let i = 0; i < 3; i++) calls.record(callRecord({ createdAt: NOON }));
  for (let i = 0; i < 5; i++) await expect(total(calls)).rejects.toMatchObject({ id: "storage_unavailable" });
  expect(calls.hasRoom).toBe(true);
  for (let i = 0; i < 4; i++) calls.record(callRecord({ createdAt: NOON }));
  expect([calls.queuedCalls, calls.droppedCalls, errors.length]).toEqual([3, 4, 1]);
  expect(calls.problem).not.toBeNull();
  await rmdir(obstacle);
  await until(() => calls.problem === null);
  expect(await total(calls)).toBe(3);
  expect(recoveries).toEqual([4]);
  calls.record(callRecord({ createdAt: NOON }));
  expect(await total(calls)).toBe(4);
});

it("closes in bounded time if it cannot write, and reports the number of lost rows", async () => {
  const calls = await open();
  await mkdir(dayPath(folder, "2026-11-15"));
  for (let i = 0; i < 3; i++) calls.record(callRecord({ createdAt: NOON }));
  await expect(calls.close()).rejects.toThrow("3 calls could not be written");
});

it("rejects a read that fails, and answers the next one", async () => {
  const calls = await open();
  const call = callRecord();
  calls.record(call);
  expect(await total(calls)).toBe(1);
  const garbage = { ...FIRST_PAGE, orderBy: "nonsense" as "cost" };
  await expect(calls.list(GATEWAY, garbage)).rejects.toThrow(Error);
  expect(await total(calls)).toBe(1);
});

it("removes expired days at the start and on demand, and subtracts their rows from quotas", async () => {
  let now = NOON;
  const clock = { now: () => now };
  const calls = await open({ maxAgeDays: 2, clock });
  calls.setQuota(GATEWAY, { maxRows: 3, whenFull: "stop" });
  for (const age of [2, 1, 0]) calls.record(callRecord({ createdAt: NOON - age * DAY }));
  expect(await total(calls)).toBe(3);
  await calls.expire();
  expect((await days()).length).toBe(3);
  now += DAY;
  await calls.expire();
  expect(await days()).toEqual(["calls-2026-11-14.db", "calls-2026-11-15.db"]);
  expect(await total(calls)).toBe(2);
  calls.record(callRecord({ createdAt: now }));
  expect(await total(calls)).toBe(3);
  await calls.close();
  now += 2 * DAY;
  const again = await open({ maxAgeDays: 2, clock });
  expect(await days()).toEqual(["calls-2026-11-16.db"]);
  expect(await total(again)).toBe(1);
});

it("leaves one file per day when closed, without a WAL", async () => {
  const calls = await open();
  for (const age of [3, 2, 1, 0]) calls.record(callRecord({ createdAt: NOON - age * DAY }));
  expect(await total(calls)).toBe(4);
  await calls.close();
  const names = await readdir(folder);
  expect(names.filter((name) => name.endsWith(".db")).sort()).toEqual(
    ["12", "13", "14", "15"].map((day) => `calls-2026-11-${day}.db`),
  );
  for (const name of names.filter((name) => name.endsWith("-wal"))) {
    expect((await stat(join(folder, name))).size).toBe(0);
  }
});

it("reports why it cannot be opened", async () => {
  await mkdir(dayPath(folder, "2026-11-15"));
  await expect(open()).rejects.toThrow(/^cannot open the call log in .*: unable to open/);
  expect(errors).toEqual([]);
});

it("opens beside a file of a later version, and reports its day once", async () => {
  const path = dayPath(folder, "2026-11-15");
  writeVersion1File(path, NOON, 1);
  setVersionOfFile(path, 99);
  const calls = await open();
  expect(calls.unreadableDays).toEqual(["2026-11-15"]);
  await calls.expire();
  expect(errors.map((error) => error.message)).toEqual([expect.stringContaining("2026-11-15")]);
  calls.record(callRecord({ createdAt: NOON + DAY }));
  expect(await total(calls)).toBe(1);
  calls.record(callRecord({ createdAt: NOON }));
  await expect(total(calls)).rejects.toMatchObject({ id: "storage_unavailable" });
  expect(calls.problem).toContain("has version 99");
  expect(versionOfFile(path)).toBe(99);
});
