/**
 * What storing a call costs: the queue and the writer thread, on SQLite and on PostgreSQL, against a synced insert per call on the main thread.
 * Main-thread time delays the gateway's callers; rows per second is the rate that the writer sustains.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import type { CallLog, CallRecord } from "../../packages/signalbox/src/engines/call-log/call-log.ts";
import { CallWriter } from "../../packages/signalbox/src/engines/call-log/call-writer.ts";
import { PostgresCallLog } from "../../packages/signalbox/src/engines/call-log/postgres/postgres-call-log.ts";
import { RowQueue } from "../../packages/signalbox/src/engines/call-log/row-queue.ts";
import { SqliteCallLog } from "../../packages/signalbox/src/engines/call-log/sqlite-call-log.ts";
import { openTestPostgres } from "../../test/support/test-postgres.ts";
import { callRecord, LOG_OPTIONS } from "../support/call-record.ts";
import type { Contender, Sample, Workload } from "../support/workload.ts";

const ROWS_ONLY = "rows without bodies";
const WITH_BODIES = "rows with two bodies of 1 KB";
const ROWS = 40_000;
/** The rival syncs every row, so it stores fewer. */
const DIRECT_ROWS = 1000;
const BODY = Buffer.from(JSON.stringify({ content: "lorem ipsum dolor ".repeat(56) }));

function makeCall(scenario: string): CallRecord {
  const body = scenario === WITH_BODIES ? BODY : null;
  return callRecord({ requestBody: body, responseBody: body });
}

function rethrow(error: Error): never {
  throw error;
}

function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "signalbox-bench-calls-"));
}

/** Records as fast as the queue admits, then waits until everything is stored. */
async function measureLog(log: CallLog, scenario: string): Promise<Sample> {
  const calls = Array.from({ length: ROWS }, () => makeCall(scenario));
  const startedAt = performance.now();
  const cpuBefore = process.threadCpuUsage();
  let mainMs = 0;
  for (let i = 0; i < ROWS;) {
    if (!log.hasRoom) await log.whenRoom();
    const burstAt = performance.now();
    for (const end = i + 64; i < end; i++) log.record(calls[i] ?? makeCall(scenario));
    mainMs += performance.now() - burstAt;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await log.get({ accountId: "default", gatewayId: "default" }, calls[ROWS - 1]?.id ?? "");
  const perSecond = ROWS / ((performance.now() - startedAt) / 1000);
  const { user, system } = process.threadCpuUsage(cpuBefore);
  return { rows: perSecond, main: (mainMs * 1000) / ROWS, thread: (user + system) / ROWS };
}

const onSqlite: Contender = {
  name: "signalbox",
  async start() {
    const folder = temporaryFolder();
    const log = await SqliteCallLog.open({ ...LOG_OPTIONS, folder });
    return {
      measure: (scenario) => measureLog(log, scenario),
      async stop() {
        await log.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};

const onPostgres: Contender = {
  name: "signalbox on PostgreSQL",
  async start() {
    const server = await openTestPostgres(["fsync=on"]);
    const database = await PostgresDatabase.open(server.url, rethrow);
    const log = await PostgresCallLog.open({ ...LOG_OPTIONS, database, url: server.url });
    return {
      measure: (scenario) => measureLog(log, scenario),
      async stop() {
        await log.close();
        await database.close();
        await server.drop();
      },
    };
  },
};

const direct: Contender = {
  name: "insert per call on the main thread",
  async start() {
    const folder = temporaryFolder();
    const writer = new CallWriter({ folder, maxBodyBytes: 10_000_000, maxTotalBytes: 8 * 1024 ** 3 });
    return {
      async measure(scenario) {
        const calls = Array.from({ length: DIRECT_ROWS }, () => makeCall(scenario));
        const startedAt = performance.now();
        const queue = new RowQueue();
        for (const call of calls) {
          queue.add(call);
          writer.write(queue.takeBatches().map(({ batch }) => batch));
          queue.release(queue.added);
        }
        const ms = performance.now() - startedAt;
        const main = (ms * 1000) / DIRECT_ROWS;
        return { rows: DIRECT_ROWS / (ms / 1000), main, thread: main };
      },
      async stop() {
        writer.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
};

const metrics = [
  { name: "rows", unit: "1/s", better: "higher" },
  { name: "main", unit: "µs/row", better: "lower" },
  // Everything on the main thread, messages of the writer included; CPU time.
  { name: "thread", unit: "µs/row", better: "lower" },
] as const;

export const workload: Workload = {
  name: "call-log",
  summary: "storing calls: rows per second, and time per row on the main thread",
  rounds: 5,
  contenders: [onSqlite, onPostgres, direct],
  scenarios: [
    { name: ROWS_ONLY, metrics },
    { name: WITH_BODIES, metrics },
  ],
  goals: [
    {
      text: "at most 5 µs of main thread per row",
      isMet: (median) => (median("signalbox", ROWS_ONLY, "main") ?? Infinity) <= 5,
    },
    {
      text: "at least 30,000 rows per second into PostgreSQL",
      isMet: (median) => (median(onPostgres.name, ROWS_ONLY, "rows") ?? 0) >= 30_000,
    },
    {
      text: "at most 5 µs more CPU on the main thread per row with PostgreSQL",
      isMet: (median) =>
        (median(onPostgres.name, ROWS_ONLY, "thread") ?? Infinity) -
          (median("signalbox", ROWS_ONLY, "thread") ?? 0) <=
        5,
    },
    {
      text: "at least 20,000 rows per second",
      isMet: (median) => (median("signalbox", ROWS_ONLY, "rows") ?? 0) >= 20_000,
    },
  ],
};
