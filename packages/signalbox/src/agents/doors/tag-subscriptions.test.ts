import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignalboxError } from "@signalbox/protocol";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrate } from "../../database/migrate.ts";
import type { Database } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";
import type { TagChange } from "../../contracts/tag-feed.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { createLogger } from "../../telemetry/logger.ts";
import type { AgentDeliveries } from "../../contracts/agent-deliveries.ts";
import { TagSubscriptions } from "./tag-subscriptions.ts";

const SUBSCRIPTION = { agent: "watcher", name: "w", account: "acme" };

let folder: string;
let database: SqliteDatabase;
let delivered: number[];
let logs: string[];
/** What the next calls throw, one after the other; null for nothing. */
let storageErrors: (Error | null)[];
let feedErrors: (Error | null)[];
let deliveryErrors: (Error | null)[];
let subscriptions: TagSubscriptions;
/** Null: this node. */
let owner: string | null = null;
let looks = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-subscriptions-"));
  database = await SqliteDatabase.open(join(folder, "x.db"), (error) => {
    throw error;
  });
  await migrate(database);
  await database.run(
    sql`INSERT INTO tag_subscription (agent, name, account_id, position) VALUES ('watcher', 'w', 'acme', 0)`,
  );
  owner = null;
  looks = 0;
  [delivered, logs, storageErrors, feedErrors, deliveryErrors] = [[], [], [], [], []];
  subscriptions = new TagSubscriptions({
    placement: {
      find: async () => {
        looks += 1;
        return owner;
      },
    },
    subscriptions: [SUBSCRIPTION],
    database: failing(database),
    deliveries: {
      deliver: async (target: object, event: { id: string }) => {
        throwNext(deliveryErrors);
        expect(target).toMatchObject(SUBSCRIPTION);
        delivered.push(Number(event.id.split(":").at(-1)));
        return { kind: "processed" };
      },
    } as unknown as AgentDeliveries,
    feed: {
      newestPosition: async () => 3,
      async *follow(_account, after, signal) {
        for (let position = after + 1; position <= 3; position++) {
          throwNext(feedErrors);
          yield change(position);
        }
        if (signal.aborted) return;
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    },
    logger: createLogger({
      level: "error",
      isPretty: false,
      destination: { write: (line) => void logs.push(line) },
    }),
  });
});
afterEach(async () => {
  await subscriptions.stop();
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

function throwNext(errors: (Error | null)[]): void {
  const error = errors.shift() ?? null;
  if (error !== null) throw error;
}

function failing(real: Database): Database {
  return {
    engine: real.engine,
    problem: null,
    get: async (query) => (throwNext(storageErrors), real.get(query)),
    all: (query) => real.all(query),
    scan: (query, turn) => real.scan(query, turn),
    run: async (query) => (throwNext(storageErrors), real.run(query)),
    transaction: (work) => real.transaction(work),
    close: () => real.close(),
  };
}

function change(position: number): TagChange {
  return {
    position,
    accountId: "acme",
    resource: { type: "ai_gateway", id: "g", zoneId: "", parentId: "", name: "" },
    action: "set",
    actor: "root",
    changedAt: 0,
    before: null,
    after: { n: String(position) },
  };
}

const position = async () =>
  (await database.get<{ position: number }>(sql`SELECT position FROM tag_subscription`))?.position;
const locked = () => new Error("database is locked");

it("continue after errors of the storage at any step, and report them", async () => {
  storageErrors = [locked(), locked()];
  feedErrors = [locked()];
  subscriptions.start();
  await expect.poll(position).toBe(3);
  expect(delivered).toEqual([1, 2, 3]);
  expect(logs.filter((line) => line.includes("retrying"))).toHaveLength(3);
});

it("deliver a change again if its position could not be stored; the ledger recognises it", async () => {
  storageErrors = [null, null, locked()];
  subscriptions.start();
  await expect.poll(position).toBe(3);
  expect(delivered).toEqual([1, 2, 2, 3]);
});

it("wait while the instance is overloaded", async () => {
  const overloaded = () => new SignalboxError("overloaded");
  deliveryErrors = [overloaded(), overloaded()];
  subscriptions.start();
  await expect.poll(position).toBe(3);
  expect(delivered).toEqual([1, 2, 3]);
});

it("continue with new changes when the old ones were pruned, even if the position cannot be stored at once", async () => {
  const expired = () => new SignalboxError("tags_changes_expired");
  feedErrors = [expired(), expired()];
  // The position is read; storing the newest one fails at first.
  storageErrors = [null, locked()];
  subscriptions.start();
  await expect.poll(position).toBe(3);
  expect(delivered).toEqual([]);
});

it("stop during the pause after an error", async () => {
  storageErrors = Array.from({ length: 1000 }, locked);
  subscriptions.start();
  await expect.poll(() => logs.length).toBeGreaterThan(2);
  await subscriptions.stop();
  expect(delivered).toEqual([]);
});

it("two nodes follow one after the other, and none goes back", async () => {
  owner = "7";
  subscriptions.start();
  await expect.poll(() => looks).toBeGreaterThan(1);
  expect(delivered).toEqual([]);
  // The other node has delivered two changes; then the instance moves.
  await database.run(sql`UPDATE tag_subscription SET position = 2`);
  owner = null;
  await expect.poll(position).toBe(3);
  expect(delivered).toEqual([3]);
});

it("a position that another node has stored meanwhile is not replaced by an earlier one", async () => {
  deliveryErrors = [new Error("later"), null];
  subscriptions.start();
  await expect.poll(() => delivered.length).toBeGreaterThan(0);
  await database.run(sql`UPDATE tag_subscription SET position = 50`);
  await expect.poll(() => delivered).toEqual([1, 2, 3]);
  await subscriptions.stop();
  expect(await position()).toBe(50);
});
