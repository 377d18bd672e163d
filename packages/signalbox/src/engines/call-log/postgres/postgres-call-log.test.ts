/** What is special about the log in PostgreSQL: lost connections, several nodes, partitions, the size limit, and texts it cannot store. */
import { randomBytes } from "node:crypto";
import type { Worker } from "node:worker_threads";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { ALL_TIME, callRecord, DAY, FIRST_PAGE, GATEWAY, NOON, packed } from "../call-log-fixture.ts";
import type { CallLog } from "../call-log.ts";
import { startWorker } from "../worker-requests.ts";
import type { PostgresCallLog, PostgresCallLogOptions } from "./postgres-call-log.ts";
import { PostgresLogs, type PostgresStorage } from "./postgres-log-fixture.ts";
import { PostgresWriter } from "./postgres-writer.ts";

/** The module that starts the thread otherwise. The address of a test file has a query. */
const OWNER = new URL("postgres-call-log.ts", import.meta.url).href;

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
      const worker = startWorker("postgres-writer", OWNER, writerOptions);
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

/** Ends the writer's connection while its transaction waits for a table that the test holds. */
async function cutAt(table: string, log: CallLog): Promise<string[]> {
  const admin = new Client({ connectionString: storage.url });
  await admin.connect();
  await admin.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  const recorded = await recordMany(log, 50);
  await until(
    async () =>
      (
        await storage.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND application_name LIKE 'signalbox calls%' AND wait_event_type = 'Lock'`,
        )
      ).length > 0,
  );
  await admin.query("ROLLBACK");
  await admin.end();
  return recorded;
}

it("opens at the first attempt if a server that is named before the primary is away, and expires there", async () => {
  const { host } = new URL(storage.url);
  const log = await open({ url: storage.url.replace(host, `127.0.0.1:1,${host}`) });
  const call = callRecord();
  log.record(call);
  expect(await ids(log)).toEqual([call.id]);
  // The connection of the expiry is opened for each of them.
  await log.expire();
  expect(errors).toEqual([]);
});

it("neither loses nor duplicates rows when its connection is cut at any step of a transaction", async () => {
  const log = await open({ flushIntervalMs: 5 });
  const recorded = await recordMany(log, 50);
  await until(() => log.queuedCalls === 0);
  for (const table of ["call_log", "call_log_body", "call_log_hour", "call_log_day", "call_log_writer"]) {
    recorded.push(...(await cutAt(table, log)));
    await until(() => log.queuedCalls === 0);
  }
  expect(await ids(log)).toEqual(recorded);
  expect(await counted(log)).toBe(recorded.length);
  expect([fatals, errors, log.droppedCalls]).toEqual([[], [], 0]);
  const bodies = await storage.query<{ n: number }>("SELECT count(*)::int AS n FROM call_log_body");
  expect(bodies).toEqual([{ n: recorded.length }]);
});

it("writes and counts nothing again whose commit was not reported, also calls that a quota kept out", async () => {
  const log = await open();
  const calls = Array.from({ length: 5 }, () => callRecord({ requestBody: Buffer.from("{}") }));
  const batches = packed(...calls).map((batch) => ({ batch, position: batch.rows }));
  for (let attempt = 0; attempt < 2; attempt++) {
    // A writer of the same process, which does not know what the earlier one has committed.
    const writer = new PostgresWriter({
      url: storage.url,
      writerId: "same-process",
      maxBodyBytes: 1000,
      maxTotalBytes: 1_000_000_000,
      usageTotals: true,
    });
    writer.setQuota(GATEWAY, { maxRows: 3, whenFull: "stop" });
    await writer.write(batches);
    await writer.close();
  }
  expect(await ids(log)).toEqual(calls.slice(0, 3).map(({ id }) => id));
  expect(await counted(log)).toBe(5);
});

it("keeps the rows that fit into the queue while PostgreSQL is away, counts the others, and writes each once", async () => {
  const recoveries: number[] = [];
  const log = await open({ maxQueuedCalls: 50, onRecovery: (dropped) => recoveries.push(dropped) });
  const recorded = [callRecord().id];
  log.record(callRecord({ id: recorded[0] ?? "" }));
  expect(await ids(log)).toEqual(recorded);
  await logs.server.stop("fast");
  const record = () => {
    const call = callRecord();
    if (log.queuedCalls < 50) recorded.push(call.id);
    log.record(call);
  };
  record();
  await until(() => log.problem !== null);
  for (let i = 0; i < 60; i++) {
    expect(log.hasRoom).toBe(true);
    record();
  }
  expect([log.queuedCalls, log.droppedCalls, errors.length]).toEqual([50, 11, 1]);
  await expect(log.list(GATEWAY, FIRST_PAGE)).rejects.toMatchObject({ id: "storage_unavailable" });
  await logs.server.start();
  await until(() => log.problem === null && log.queuedCalls === 0);
  expect(recoveries).toEqual([11]);
  await until(() => storage.database.problem === null);
  expect(await ids(log)).toEqual(recorded);
  expect(await counted(log)).toBe(recorded.length);
});

it("neither loses nor duplicates rows when the writer's thread dies", async () => {
  const log = await open({ flushIntervalMs: 5 });
  const recorded: string[] = [];
  for (let round = 0; round < 3; round++) {
    recorded.push(...(await recordMany(log, 250)));
    await writers.at(-1)?.terminate();
    // For the next writer, which must commit something before it is ended, too: two deaths without a commit are fatal.
    const next = callRecord();
    recorded.push(next.id);
    log.record(next);
    await until(() => log.queuedCalls === 0);
  }
  expect([writers.length, fatals]).toEqual([4, []]);
  expect(await ids(log)).toEqual(recorded);
  expect(await counted(log)).toBe(recorded.length);
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
  // One of them applies it. A call that the other one stores meanwhile may stay until the next one.
  await expect.poll(async () => (await ids(b)).length).toBe(10);
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

it("a node whose clock is ahead removes no day of the others", async () => {
  const log = await open({ maxAgeDays: 30 });
  log.record(callRecord({ createdAt: Date.now() }));
  expect((await ids(log)).length).toBe(1);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 400 * DAY });
  try {
    await log.expire();
  } finally {
    vi.useRealTimers();
  }
  expect((await ids(log)).length).toBe(1);
});

it("asks for the number of a gateway again after a failover: another gateway may have it now", async () => {
  const log = await open();
  log.record(callRecord());
  expect((await ids(log)).length).toBe(1);
  // What a server that lost the row of the gateway would have after calls of another account.
  await storage.query(
    "DELETE FROM call_log; UPDATE call_log_gateway SET account_id = 'stranger', gateway_id = 'x'",
  );
  await storage.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'signalbox calls%'`,
  );
  const own = callRecord();
  log.record(own);
  expect(await ids(log)).toEqual([own.id]);
  const stranger = { accountId: "stranger", gatewayId: "x" };
  expect((await log.list(stranger, FIRST_PAGE)).rows).toEqual([]);
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
  // Reported after the commit that a read may already have seen.
  await expect.poll(() => small.size.rowsRemoved).toBe(total);
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
  const only = [{ dimension: { kind: "token" } as const, value: "t" }];
  const query = { ...ALL_TIME, dimensions: [], only, maxValues: 1 };
  const [figures] = (await log.summariseBy({ ...query, groupBy: ["day", "gateway"] })).figures;
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
