/**
 * The first touch of an entity waits until its instance is in the catalog. How long that takes, alone and while the inspector's list is written,
 * on PostgreSQL and on SQLite. A round trip to the database is measured in the same run.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InstanceCatalog } from "../../packages/signalbox/src/agents/instance/instance-catalog.ts";
import { rawSql } from "../../packages/signalbox/src/core/sql.ts";
import { ulid } from "../../packages/signalbox/src/core/ulid.ts";
import type { Database } from "../../packages/signalbox/src/database/database.ts";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import type { DeliveryRecord } from "../../packages/signalbox/src/webhooks/delivery-record.ts";
import { DeliveryTable } from "../../packages/signalbox/src/webhooks/delivery-table.ts";
import { openTestPostgres } from "../../test/support/test-postgres.ts";
import type { RunningContender, Sample, Workload } from "../support/workload.ts";

const ALONE = "first touches, one at a time";
const DURING_FLUSH = "first touches while the inspector's list is written";
const TOGETHER = "64 first touches at once";
const TOUCHES = 100;
const ROWS_PER_FLUSH = 100;
const KEEP = 1000;
const ON_POSTGRES = "signalbox on PostgreSQL";
const ROUND_TRIP = rawSql("SELECT 1 AS one");

let next = 0;
const newRef = () => ({ account: "default", agent: "bench", name: `entity-${next++}` });

function delivery(): DeliveryRecord {
  return {
    id: ulid(),
    accountId: "default",
    source: "generic",
    status: "accepted",
    reason: "processed",
    httpStatus: 200,
    receivedAt: Date.now(),
    durationMs: 3,
    deliveryId: ulid(),
    type: "order.created",
    title: "order.created",
    agent: "bench",
    instance: "entity",
    contentType: "application/json",
    headers: { "user-agent": "bench" },
    bodyBytes: 1024,
    body: Buffer.alloc(1024, "x"),
    error: null,
    request: null,
    replayedAt: null,
  };
}

async function times(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) {
    const startedAt = performance.now();
    await work();
    all.push(performance.now() - startedAt);
  }
  return all.sort((a, b) => a - b);
}

const quantile = (sorted: readonly number[], q: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;

async function measure(database: Database, catalog: InstanceCatalog, scenario: string): Promise<Sample> {
  const table = new DeliveryTable(database);
  const trips = await times(TOUCHES, () => database.get(ROUND_TRIP));
  let isDone = false;
  const flushing = (async () => {
    while (scenario === DURING_FLUSH && !isDone) {
      await table.insert(Array.from({ length: ROWS_PER_FLUSH }, delivery), KEEP);
    }
  })();
  const together = () =>
    Promise.all(Array.from({ length: 64 }, () => catalog.register(newRef(), Date.now())));
  const touches =
    scenario === TOGETHER
      ? await times(TOUCHES / 10, together)
      : await times(TOUCHES, () => catalog.register(newRef(), Date.now()));
  isDone = true;
  await flushing;
  return { p50: quantile(touches, 0.5), p99: quantile(touches, 0.99), trip: quantile(trips, 0.5) };
}

async function run(database: Database, drop: () => Promise<void> | void): Promise<RunningContender> {
  await migrate(database);
  const catalog = new InstanceCatalog(database);
  return {
    measure: (scenario) => measure(database, catalog, scenario),
    async stop() {
      await catalog.close();
      await database.close();
      await drop();
    },
  };
}

function rethrow(error: Error): never {
  throw error;
}

const metrics = [
  { name: "p50", unit: "ms", better: "lower" },
  { name: "p99", unit: "ms", better: "lower" },
  { name: "trip", unit: "ms", better: "lower" },
] as const;

export const workload: Workload = {
  name: "first-touch",
  summary:
    "the first touch of an entity: time until its instance is in the catalog, and a round trip to the database",
  rounds: 5,
  contenders: [
    {
      name: ON_POSTGRES,
      async start() {
        const server = await openTestPostgres(["fsync=on"]);
        return run(await PostgresDatabase.open(server.url, rethrow), () => server.drop());
      },
    },
    {
      name: "signalbox",
      async start() {
        const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-touch-"));
        const database = await SqliteDatabase.open(join(folder, "signalbox.db"), rethrow);
        return run(database, () => rmSync(folder, { recursive: true, force: true }));
      },
    },
  ],
  scenarios: [ALONE, DURING_FLUSH, TOGETHER].map((name) => ({ name, metrics })),
  goals: [ALONE, DURING_FLUSH].map((scenario) => ({
    text: `${scenario}: at most one round trip plus 2 ms on PostgreSQL`,
    isMet: (median) =>
      (median(ON_POSTGRES, scenario, "p50") ?? Infinity) <= (median(ON_POSTGRES, scenario, "trip") ?? 0) + 2,
  })),
};
