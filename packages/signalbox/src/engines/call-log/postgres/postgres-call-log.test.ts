/** What is special about the log in PostgreSQL: lost connections, several nodes, partitions, the size limit, and texts it cannot store. */
import { randomBytes } from "node:crypto";
import type { Worker } from "node:worker_threads";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { ALL_TIME, callRecord, DAY, FIRST_PAGE, GATEWAY, NOON } from "../call-log-fixture.ts";
import type { CallLog } from "../call-log.ts";
import { startWorker } from "../worker-requests.ts";
import type { PostgresCallLog, PostgresCallLogOptions } from "./postgres-call-log.ts";
import { PostgresLogs, type PostgresStorage } from "./postgres-log-fixture.ts";

let logs: PostgresLogs;
let storage: PostgresStorage;
let opened: PostgresCallLog[];
let errors: Error[];
let fatals: Error[];
let writers: Worker[];

beforeAll(async () => {
  logs = await PostgresLogs.start();
});
afterAll(() => logs.stop());
beforeEach(async () => {
  storage = await logs.openStorage();
  opened = [];
  errors = [];
  fatals = [];
  writers = [];
});
afterEach(async () => {
  for (const log of opened) await log.close().catch(() => undefined);
  await storage.remove();
});

async function open(options: Partial<PostgresCallLogOptions> = {}): Promise<PostgresCallLog> {
  const log = await storage.openLog({
    flushIntervalMs: 20,
    onError: (error) => errors.push(error),
    onFatal: (error) => fatals.push(error),
    startWriter(writerOptions) {
      const worker = startWorker("postgres-writer", import.meta.url, writerOptions);
      writers.push(worker);
      return worker;
    },
    ...options,
  });
  opened.push(log);
  return log;
}

const ids = async (log: CallLog) =>
  (await log.list(GATEWAY, { ...FIRST_PAGE, direction: "asc", limit: 10_000 })).rows.map((row) => row.id);
const counted = async (log: CallLog) => (await log.summarise({ ...ALL_TIME, groupBy: [] }))[0]?.calls;

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Records calls, a few at a time, so that they arrive during commits; returns their ids. */
async function recordMany(log: CallLog, count: number): Promise<string[]> {
  const recorded: string[] = [];
  while (recorded.length < count) {
    for (let i = 0; i < 50; i++) {
      const call = callRecord({ responseBody: Buffer.from("answer") });
      recorded.push(call.id);
      log.record(call);
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return recorded;
}

/** Ends the writer's connection while it is in a transaction; returns false if it was in none. */
const cut = async () =>
  (
    await storage.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name LIKE 'signalbox calls%' AND xact_start IS NOT NULL`,
    )
  ).length > 0;

it("neither loses nor duplicates rows when connections are cut in the middle of commits", async () => {
  const log = await open({ flushIntervalMs: 5 });
  const recorded: string[] = [];
  for (let cuts = 0; cuts < 5; cuts++) {
    do recorded.push(...(await recordMany(log, 100)));
    while (!(await cut()));
    await until(() => log.queuedCalls === 0);
  }
  expect(await ids(log)).toEqual(recorded);
  expect(await counted(log)).toBe(recorded.length);
  expect([fatals, log.droppedCalls]).toEqual([[], 0]);
  const bodies = await storage.query<{ n: number }>("SELECT count(*)::int AS n FROM call_log_body");
  expect(bodies).toEqual([{ n: recorded.length }]);
});

it("neither loses nor duplicates rows when the writer's thread dies", async () => {
  const log = await open({ flushIntervalMs: 5 });
  const recorded: string[] = [];
  for (let round = 0; round < 3; round++) {
    recorded.push(...(await recordMany(log, 250)));
    await writers.at(-1)?.terminate();
    await until(() => log.queuedCalls === 0);
  }
  expect([writers.length, fatals]).toEqual([4, []]);
  expect(await ids(log)).toEqual(recorded);
  expect(await counted(log)).toBe(recorded.length);
});

it("counts a call once that a quota keeps out, also if its commit was not reported", async () => {
  const log = await open();
  log.setQuota(GATEWAY, { maxRows: 1, whenFull: "stop" });
  for (let i = 0; i < 3; i++) log.record(callRecord());
  // Committed by a connection whose response was lost.
  const before = await storage.query("SELECT * FROM call_log_writer");
  expect(before.length).toBe(0);
  expect((await ids(log)).length).toBe(1);
  await writers[0]?.terminate();
  await until(() => writers.length === 2);
  log.record(callRecord());
  expect((await ids(log)).length).toBe(1);
  expect(await counted(log)).toBe(4);
});

it("stores a call once whose id is recorded twice", async () => {
  const log = await open();
  const call = callRecord({ requestBody: Buffer.from("{}") });
  log.record(call);
  expect(await ids(log)).toEqual([call.id]);
  const next = callRecord();
  for (const again of [call, next, next]) log.record(again);
  expect(await ids(log)).toEqual([call.id, next.id]);
  expect([await counted(log), errors]).toEqual([2, []]);
});

it("lists the calls of another node, whose quota applies to both", async () => {
  const others: PostgresCallLog[] = [];
  const flushOthers = async () => {
    await Promise.all(others.map((log) => log.flush()));
  };
  const a = await open({ flushIntervalMs: 10_000, flushOthers });
  const b = await open({ flushIntervalMs: 10_000, flushOthers });
  others.push(a, b);
  for (const log of [a, b]) log.setQuota(GATEWAY, { maxRows: 150, whenFull: "stop" });
  const first = callRecord();
  a.record(first);
  expect(await ids(b)).toEqual([first.id]);
  for (let i = 0; i < 100; i++) for (const log of [a, b]) log.record(callRecord());
  expect((await ids(a)).length).toBe(150);
  expect(await counted(b)).toBe(201);
  for (const log of [a, b]) log.setQuota(GATEWAY, { maxRows: 10, whenFull: "deleteOldest" });
  a.record(callRecord());
  expect((await ids(b)).length).toBe(10);
  await b.dropGateway(GATEWAY);
  expect([await ids(a), await counted(a)]).toEqual([[], undefined]);
  const next = callRecord();
  a.record(next);
  expect(await ids(b)).toEqual([next.id]);
});

const partitions = async () =>
  (
    await storage.query<{ name: string }>(
      "SELECT inhrelid::regclass::text AS name FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE relkind = 'r' ORDER BY 1",
    )
  ).map(({ name }) => name);

it("creates the partitions of today and tomorrow, and drops those of expired days", async () => {
  let now = NOON;
  const clock = { now: () => now };
  const a = await open({ maxAgeDays: 2, clock });
  const b = await open({ maxAgeDays: 2, clock });
  expect(await partitions()).toEqual(
    ["call_log_20261115", "call_log_20261116", "call_log_body_20261115", "call_log_body_20261116"].sort(),
  );
  for (const age of [2, 1, 0])
    a.record(callRecord({ createdAt: NOON - age * DAY, requestBody: Buffer.from("x") }));
  expect((await ids(a)).length).toBe(3);
  now += DAY;
  await Promise.all([a.expire(), b.expire()]);
  expect((await partitions()).filter((name) => !name.includes("body"))).toEqual(
    ["14", "15", "16", "17"].map((day) => `call_log_202611${day}`),
  );
  expect([(await ids(b)).length, await counted(b)]).toEqual([2, 2]);
  // A row of an expired day finds no partition at a node that remembers one.
  a.record(callRecord({ createdAt: NOON - 2 * DAY }));
  expect((await ids(a)).length).toBe(3);
  expect(errors).toEqual([]);
});

it("completes the removal of a partition that was interrupted", async () => {
  const a = await open();
  a.record(callRecord({ createdAt: NOON - 20 * DAY }));
  expect((await ids(a)).length).toBe(1);
  await storage.query("ALTER TABLE call_log_body DETACH PARTITION call_log_body_20261026 CONCURRENTLY");
  await a.close();
  const b = await open({ maxAgeDays: 10, clock: { now: () => NOON } });
  expect(await ids(b)).toEqual([]);
  const left = await storage.query("SELECT 1 FROM pg_class WHERE relname LIKE 'call_log%20261026'");
  expect(left).toEqual([]);
});

it("removes the oldest bodies, then the oldest rows, when the log is too large, and keeps usage", async () => {
  const options = { maxBodyBytes: 10_000_000, flushIntervalMs: 20 };
  const log = await open({ ...options, maxTotalBytes: 5_000_000 });
  const recorded: string[] = [];
  for (let day = 0; day < 3; day++) {
    for (let i = 0; i < 8; i++) {
      const call = callRecord({ createdAt: NOON - (3 - day) * DAY, responseBody: randomBytes(256 * 1024) });
      recorded.push(call.id);
      log.record(call);
    }
  }
  await ids(log);
  await until(async () => {
    // The size is measured once a second, with a commit.
    log.record(callRecord({ createdAt: NOON }));
    await ids(log);
    return log.size.bodiesRemoved > 0 && log.size.bytes <= 5_000_000;
  });
  const kept: boolean[] = [];
  for (const id of recorded) kept.push((await log.body(GATEWAY, id, "response")) !== null);
  expect(kept).toEqual(kept.toSorted((a, b) => Number(a) - Number(b)));
  expect(kept.filter(Boolean).length).toBeGreaterThanOrEqual(16);
  expect(log.size).toMatchObject({ bodiesRemoved: kept.filter((is) => !is).length, rowsRemoved: 0 });
  expect(await log.get(GATEWAY, recorded[0] ?? "")).toMatchObject({ hasResponseBody: true });
  const total = (await ids(log)).length;
  await log.close();
  const small = await open({ ...options, maxTotalBytes: 1 });
  await until(async () => (await ids(small)).length === 0);
  expect(await counted(small)).toBe(total);
  expect(small.size.rowsRemoved).toBe(total);
});

it("stores texts that PostgreSQL refuses with a replacement, so that filters work", async () => {
  const log = await open();
  const nul = String.fromCharCode(0);
  const half = String.fromCharCode(0xd800);
  const call = callRecord({
    userAgent: `a${nul}b${half}`,
    model: `m${nul}`,
    metadata: '{"a\\u0000":"x\\u0000y","b":"\\ud800","pair":"\\ud83c\\udf32"}',
    tokensIn: 1.5,
  });
  log.record(call);
  expect(await log.get(GATEWAY, call.id)).toMatchObject({ userAgent: "a\uFFFDb\uFFFD", tokensIn: 1 });
  const search = async (text: string) => (await log.list(GATEWAY, { ...FIRST_PAGE, search: text })).total;
  expect([await search("x\uFFFDy"), await search("🌲"), await search("nothing"), await search(nul)]).toEqual([
    1, 1, 0, 1,
  ]);
  expect(await log.edit(GATEWAY, call.id, { metadata: '{"c":"\\u0000"}' })).toBe(true);
  expect(await search("c")).toBe(1);
  expect(await log.summarise({ ...ALL_TIME, groupBy: ["model"] })).toMatchObject([{ model: "m\uFFFD" }]);
});

it("adds up the calls of one token as SQLite does", async () => {
  const log = await open();
  log.record(callRecord({ tokenId: "t", durationMs: 5, cost: null, success: false }));
  log.record(callRecord({ tokenId: "t", durationMs: 5.01, cost: 2, tokensIn: 7 }));
  log.record(callRecord({ tokenId: "other" }));
  const [figures] = await log.summarise({ ...ALL_TIME, groupBy: ["day", "gateway"], tokenId: "t" });
  expect(figures).toMatchObject({
    time: NOON - DAY / 2,
    gatewayId: "main",
    calls: 2,
    errors: 1,
    cost: 2,
    tokensIn: 17,
    durationMs: 10.01,
  });
  expect(figures?.latency.slice(0, 3)).toEqual([1, 1, 0]);
});
