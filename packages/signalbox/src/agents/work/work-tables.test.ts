/** Tables that are created with the first row. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type InstanceDatabase,
  type InstanceStore,
  openInstanceStore,
} from "../../engines/instance-store/index.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { runInTurn } from "../../engines/turn-runtime/current-turn.ts";
import { Turn } from "../../engines/turn-runtime/turn.ts";
import { OutputGate } from "../../engines/turn-runtime/output-gate.ts";
import { Transactions } from "../../engines/turn-runtime/transactions.ts";
import { BASE_SCHEMA, RESERVED_NAMES } from "../instance/base-schema.ts";
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
    reservedNames: RESERVED_NAMES,
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
  const deadLetters = new DeadLetters(tables, clock, { workChanged: ignore, lettersChanged: ignore });
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

/** Writes the content of a later page below an interior page over the first one: its rows are there twice, and their keys lead to the later ones. */
function repeatLaterPage(interior: number): void {
  const path = readdirSync(folder, { recursive: true, encoding: "utf8" }).find((name) =>
    name.endsWith(".db"),
  );
  const file = join(folder, path ?? "");
  const bytes = readFileSync(file);
  const pageBytes = bytes.readUInt16BE(16);
  const at = (page: number) => (page - 1) * pageBytes;
  /** The pointers to cells follow the header of 12 bytes; a cell begins with the number of the page below (SQLite file format, section 1.6). */
  const child = (cell: number) =>
    bytes.readUInt32BE(at(interior) + bytes.readUInt16BE(at(interior) + 12 + 2 * cell));
  bytes.copy(bytes, at(child(0)), at(child(3)), at(child(3)) + pageBytes);
  writeFileSync(file, bytes);
}

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

describe("a damaged database in which work can be read but not changed", () => {
  it.each(["queue", "schedule"] as const)("fails the attempt instead of running it for ever: %s", (kind) => {
    const { queue, schedules, transactions } = open();
    if (kind === "queue") queue.add("work", { n: 1 });
    else schedules.add(new Date(0), "work", { n: 1 }, {});
    transactions.finish();
    const table = rawSql(`_signalbox_${kind}`);
    database.run(sql`CREATE TRIGGER damaged BEFORE UPDATE ON ${table} BEGIN SELECT RAISE(IGNORE); END`);
    expect(() => (kind === "queue" ? queue : schedules).begin()).toThrow(/damaged/);
  });

  it.each(["queue", "schedule"] as const)(
    "fails for work without attempts that cannot be deleted: %s",
    (kind) => {
      const { queue, schedules, transactions, deadLetters } = open();
      if (kind === "queue") queue.add("work", 1);
      else schedules.add(new Date(0), "work", 1, {});
      transactions.finish();
      const table = rawSql(`_signalbox_${kind}`);
      database.run(sql`UPDATE ${table} SET attempts = 3`);
      database.run(sql`CREATE TRIGGER damaged BEFORE DELETE ON ${table} BEGIN SELECT RAISE(IGNORE); END`);
      expect(() => (kind === "queue" ? queue : schedules).begin()).toThrow(/damaged/);
      expect(deadLetters.count()).toBeLessThan(2);
    },
  );

  it.each(["queue", "schedule"] as const)(
    "runs nothing for ever if a page has the content of another one: %s",
    async (kind) => {
      const { queue, schedules, transactions } = open();
      for (let n = 0; n < 60; n++)
        if (kind === "queue") queue.add("work", "x".repeat(200));
        else schedules.add(new Date(n), "work", "x".repeat(200), {});
      transactions.finish();
      const root = database.get<{ page: number }>(
        sql`SELECT rootpage AS page FROM sqlite_schema WHERE name = ${`_signalbox_${kind}`}`,
      );
      await database.close();
      repeatLaterPage(root?.page ?? 0);
      database = await store.open("a");
      const damaged = open();
      let runs = 0;
      const runAll = () => {
        for (; runs < 500; runs++) {
          const attempt = (kind === "queue" ? damaged.queue : damaged.schedules).begin();
          if (attempt === null) return;
          attempt.fail(new Error("no"));
        }
      };
      try {
        runAll();
      } catch (error) {
        expect(String(error)).toMatch(/damaged|malformed/);
      }
      expect(runs).toBeLessThan(500);
    },
  );

  it("fails for a row whose values are of other types", () => {
    const { queue, schedules, transactions } = open();
    queue.add("work", 1);
    schedules.add(new Date(0), "work", 1, {});
    transactions.finish();
    // As SQLite compares, a text or bytes are larger than any number; as JavaScript does, these are smaller than now.
    for (const value of [sql`'5x'`, sql`x'35'`, sql`9e999`]) {
      database.run(sql`UPDATE _signalbox_queue SET next_at = ${value}`);
      database.run(sql`UPDATE _signalbox_schedule SET next_at = ${value}`);
      expect(() => queue.nextAt()).toThrow(/damaged/);
      expect(() => schedules.nextAt()).toThrow(/damaged/);
    }
    database.run(sql`UPDATE _signalbox_queue SET next_at = 0, attempts = 'none'`);
    database.run(sql`UPDATE _signalbox_schedule SET next_at = 0, attempts = x'00'`);
    expect(() => queue.begin()).toThrow();
    expect(() => schedules.begin()).toThrow();
  });

  it("fails for an interval that never ends", () => {
    const { schedules, transactions } = open();
    schedules.addEvery(60, "work", 1, {});
    transactions.finish();
    for (const spec of ["-1000", "0", "", "x"]) {
      database.run(sql`UPDATE _signalbox_schedule SET spec = ${spec}, due = 0, next_at = 0`);
      expect(() => schedules.begin()?.complete()).toThrow(/damaged/);
      transactions.rollbackOpen();
    }
  });
});

describe("the time of a schedule", () => {
  it("is no text of a date, and none that cannot be written", () => {
    const { schedules } = open();
    expect(() => schedules.add("2099-01-01T00:00:00Z", "work", 1, {})).toThrow("pass a Date");
    expect(() => schedules.add(1e13, "work", 1, {})).toThrow("too long");
    expect(() => schedules.addEvery(1e13, "work", 1, {})).toThrow("too long");
  });
});

it("work that throws something without a text becomes a dead letter like any other", () => {
  const { queue, deadLetters, transactions } = open();
  queue.add("work", 1, { retry: { maxAttempts: 1 } });
  transactions.finish();
  expect(queue.begin()?.fail(Object.create(null))).toBe(true);
  expect(deadLetters.list(1).items).toMatchObject([{ error: expect.any(String), attempts: 1 }]);
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

it("an attempt that is repeated because the storage ended it keeps its number, also the last one", () => {
  const { queue, schedules, deadLetters } = open();
  queue.add("work", {}, { retry: { maxAttempts: 1 } });
  schedules.add(0, "tick", {}, { retry: { maxAttempts: 1 } });
  expect(queue.begin()?.item.attempts).toBe(1);
  schedules.begin();
  expect(queue.begin(true)?.item.attempts).toBe(1);
  expect(schedules.begin(true)).not.toBeNull();
  expect([schedules.states()[0]?.attempts, deadLetters.list(10).items]).toEqual([1, []]);
  // Without that, it counts as the end of the process.
  expect([queue.begin(), schedules.begin()]).toEqual([null, null]);
  expect(deadLetters.list(10).items).toHaveLength(2);
});
