/** Tables that are created with the first row. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type InstanceDatabase,
  type InstanceStore,
  openInstanceStore,
} from "../../engines/instance-store/index.ts";
import { sql } from "../../core/sql.ts";
import { runInTurn, Turn } from "../../engines/turn-runtime/turn.ts";
import { OutputGate } from "../../engines/turn-runtime/output-gate.ts";
import { Transactions } from "../../engines/turn-runtime/transactions.ts";
import { BASE_SCHEMA, RESERVED_NAME } from "../instance/base-schema.ts";
import { DeadLetters } from "./dead-letters.ts";
import { Schedules } from "./schedules.ts";
import { WorkQueue } from "./work-queue.ts";
import { WorkTables } from "./work-tables.ts";

const fail = (error: Error) => {
  throw error;
};
const ignore = () => undefined;
let folder: string;
let store: InstanceStore;
let database: InstanceDatabase;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-work-"));
  store = await openInstanceStore("journal", {
    folder: join(folder, "agents"),
    baseSchema: BASE_SCHEMA,
    reservedName: RESERVED_NAME,
    segmentBytes: 2 ** 20,
    onFailure: fail,
    onStall: fail,
  });
  database = await store.open("a");
});

afterEach(async () => {
  await database.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function open() {
  const gate = new OutputGate({ sync: () => database.sync(), onIdle: ignore });
  const transactions = new Transactions(database, gate, fail);
  const tables = new WorkTables(database, transactions);
  const clock = { now: () => 1_800_000_000_000 };
  const deadLetters = new DeadLetters(tables, clock, ignore);
  return {
    transactions,
    deadLetters,
    queue: new WorkQueue(tables, deadLetters, clock, ignore),
    schedules: new Schedules(tables, deadLetters, clock, ignore),
  };
}

const tableCount = () =>
  database.get<{ n: number }>(
    sql`SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('_signalbox_queue', '_signalbox_dead_letter', '_signalbox_schedule')`,
  )?.n;

describe("an instance without work", () => {
  it("has no work tables; reads and removals find nothing and write nothing", () => {
    const { queue, schedules, deadLetters, transactions } = open();
    expect([queue.count(), queue.all(), queue.nextAt(), queue.find("x"), queue.begin()]).toEqual([
      0,
      [],
      null,
      undefined,
      null,
    ]);
    expect([schedules.count(), schedules.list(), schedules.nextAt(), schedules.begin()]).toEqual([
      0,
      [],
      null,
      null,
    ]);
    expect([deadLetters.count(), deadLetters.list(10).items, deadLetters.replay("x")]).toEqual([
      0,
      [],
      false,
    ]);
    expect([queue.remove("x"), queue.removeAll(), schedules.cancel("x")]).toEqual([false, 0, false]);
    expect(transactions.isOpen).toBe(false);
    expect(tableCount()).toBe(0);
  });
});

describe("the first work", () => {
  it.each(["queue", "schedule"] as const)("creates all tables when it is a %s", (kind) => {
    const { queue, schedules, transactions } = open();
    if (kind === "queue") queue.add("work", { n: 1 });
    else schedules.add(60, "work", { n: 1 }, {});
    transactions.finish();
    expect(tableCount()).toBe(3);
    expect([queue.count(), schedules.count()]).toEqual(kind === "queue" ? [1, 0] : [0, 1]);
  });

  it("that is rolled back removes them, and the next work creates them again", () => {
    const { queue, transactions } = open();
    const turn = new Turn<unknown>(
      {},
      { kind: "rpc", label: "", body: ignore },
      [],
      { gone: null },
      ignore,
      ignore,
    );
    runInTurn(turn, () => queue.add("work", 1), null);
    transactions.rollback(turn);
    expect([queue.count(), tableCount()]).toEqual([0, 0]);
    queue.add("work", 2);
    transactions.finish();
    expect(queue.all().map(({ payload }) => payload)).toEqual([2]);
  });

  it("is there after a reload, and agents' own SQL cannot change it", async () => {
    const first = open();
    first.queue.add("work", 1);
    first.transactions.finish();
    await database.close();
    database = await store.open("a");
    expect(open().queue.count()).toBe(1);
    expect(() => database.guardedStatement(["DELETE FROM _signalbox_queue"])).toThrow(
      "belongs to the runtime",
    );
  });
});
