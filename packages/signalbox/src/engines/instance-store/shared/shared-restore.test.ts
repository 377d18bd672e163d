/** Local files are a cache: what PostgreSQL has is enough, whatever is left of them. */
import fc from "fast-check";
import { cpSync, existsSync, globSync, mkdtempSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rawSql, sql } from "../../../core/sql.ts";
import { commitRow, readRows, rowsOf, TEST_SCHEMA, writeRow } from "../instance-disks-fixture.ts";
import type { InstanceDatabase } from "../instance-store.ts";
import type { SharedStore, SharedStoreOptions } from "./shared-store.ts";
import { type TestNode, useSharedTables } from "./shared-store-fixture.ts";

const tables = useSharedTables();
let folder = "";
let opened: SharedStore[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-shared-"));
  opened = [];
});
afterEach(async () => {
  for (const store of opened) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(
  disk: string,
  more: Partial<SharedStoreOptions> = {},
): Promise<{ store: SharedStore; node: TestNode }> {
  const options = { baseSchema: TEST_SCHEMA, reservedNames: ["_base"], onFailure: fail, onStall: fail };
  const started = await tables.start({ folder: join(folder, disk), ...options }, more);
  opened.push(started.store);
  return started;
}

const bytesOf = (database: InstanceDatabase) => Buffer.from(database.snapshot());

/** Opens the instance on a machine without files and compares it with the live database. */
async function expectRestored(live: Buffer, name = "x"): Promise<void> {
  const { store } = await start(`empty-${opened.length}`);
  const database = await store.open(name);
  expect(database.get(rawSql("PRAGMA integrity_check"))).toEqual({ integrity_check: "ok" });
  expect(bytesOf(database).equals(live)).toBe(true);
  await database.close();
}

describe("a restore on an empty machine", () => {
  it("equals the live database, from records alone", async () => {
    const { store } = await start("one");
    const database = await store.open("x", "CREATE TABLE own (x INTEGER);");
    for (let i = 0; i < 20; i++) await writeRow(database, i);
    await expectRestored(bytesOf(database));
    await database.close();
  });

  it("has what was committed before a sync, also if the next transaction was open then", async () => {
    const { store } = await start("one");
    const database = await store.open("x");
    await database.sync();
    commitRow(database, 1);
    database.begin();
    database.run(sql`INSERT INTO t VALUES (2)`);
    await database.sync();
    const other = await (await start("two")).store.open("x");
    expect(readRows(other)).toEqual([1]);
    await other.close();
    database.rollback();
  });

  it("replaces a local file after SQLite has failed to commit", async () => {
    const { store } = await start("one");
    const database = await store.open("x");
    await writeRow(database, 1);
    database.begin();
    database.run(sql`INSERT INTO t VALUES (2)`);
    database.run(rawSql("ROLLBACK"));
    expect(() => database.commit()).toThrow("nothing was written");
    await database.close();
    const { restores } = store.ownership.figures;
    expect(await rowsOf(store, "x")).toEqual([1]);
    expect(store.ownership.figures.restores).toBe(restores + 1);
  });

  it("equals a busy database that never pauses, from parts and records, after the records before are deleted", async () => {
    const { store } = await start("one", { graceMs: 0 });
    const database = await store.open("x");
    const { figures } = store.ownership;
    let last: Promise<void> = Promise.resolve();
    for (let i = 0; figures.compactions < 4; i++) {
      grow(database, i);
      last = database.sync();
      // The next commit does not wait for this one.
      await new Promise((resolve) => setImmediate(resolve));
    }
    await last;
    await database.sync();
    const live = bytesOf(database);
    const count =
      "SELECT count(*)::int AS n FROM agent_log l JOIN agent_owner o ON o.id = l.agent WHERE l.kind <> 'c' AND l.seq <= o.snap_seq";
    await expect.poll(async () => (await tables.query<{ n: number }>(count))[0]?.n).toBe(0);
    const [parts] = await tables.query<{ n: number }>("SELECT count(*)::int AS n FROM agent_part");
    expect(parts?.n).toBeGreaterThan(1);
    await expectRestored(live);
    await database.close();
  });

  it("equals the live database after any sequence of operations", async () => {
    const operations = ["put", "put", "grow", "shrink", "sync", "close", "move"] as const;
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...operations), { minLength: 3, maxLength: 25 }),
        async (steps) => {
          run += 1;
          const name = `property-${run}`;
          const stores = [(await start(`a-${run}`)).store, (await start(`b-${run}`)).store] as const;
          let at = 0;
          let database = await stores[0].open(name);
          for (const [i, step] of steps.entries()) {
            if (step === "put") commitRow(database, i);
            else if (step === "grow") grow(database, i);
            else if (step === "shrink") shrink(database);
            else if (step === "sync") await database.sync();
            else {
              const before = bytesOf(database);
              await database.close();
              if (step === "move") {
                await stores[at]?.ownership.release([name]);
                at = 1 - at;
              }
              database = await (stores[at] ?? stores[0]).open(name);
              expect(bytesOf(database).equals(before)).toBe(true);
            }
          }
          await database.sync();
          await expectRestored(bytesOf(database), name);
          await database.close();
          for (const store of opened.splice(0)) await store.close();
        },
      ),
      { numRuns: 6 },
    );
  });

  it("fails if a record is missing or damaged, and says so", async () => {
    const { store } = await start("one");
    const database = await store.open("x");
    for (let i = 0; i < 4; i++) await writeRow(database, i);
    await database.close();
    await tables.query("UPDATE agent_log SET data = overlay(data PLACING '\\xffff' FROM 100) WHERE seq = 3");
    const other = (await start("two")).store;
    await expect(other.open("x")).rejects.toThrow("do not have their checksum");
    await tables.query("DELETE FROM agent_log WHERE seq = 3");
    const third = (await start("three")).store;
    await expect(third.open("x")).rejects.toThrow("incomplete or damaged: record 3 is missing");
  });
});

describe("the files of a node", () => {
  it("are used when it wakes an instance, without a restore", async () => {
    const { store } = await start("one");
    for (let i = 0; i < 3; i++) {
      const database = await store.open("x");
      expect(readRows(database)).toHaveLength(i);
      await writeRow(database, i);
      await database.close();
    }
    expect(store.ownership.figures).toMatchObject({ claims: 1, cacheHits: 2, restores: 0 });
  });

  it("are used after a restart of the node, and brought up to date if another node has written", async () => {
    const first = await start("one");
    let database = await first.store.open("x");
    await writeRow(database, 1);
    await database.close();
    await first.store.close();

    const second = await start("one");
    database = await second.store.open("x");
    expect(readRows(database)).toEqual([1]);
    expect(second.store.ownership.figures).toMatchObject({ cacheHits: 1, restores: 0, takeOvers: 1 });
    await database.close();

    const other = await start("two");
    database = await other.store.open("x");
    await writeRow(database, 2);
    await database.close();
    second.store.ownership.drop("x");
    database = await second.store.open("x");
    expect(readRows(database)).toEqual([1, 2]);
    expect(second.store.ownership.figures).toMatchObject({ cacheHits: 2, restores: 0 });
    await database.close();
  });

  it("are not used if they have what PostgreSQL has lost", async () => {
    const [one, two] = [await start("one"), await start("two")];
    let database = await one.store.open("x");
    for (const value of [1, 2]) await writeRow(database, value);
    await database.close();
    await tables.query("DELETE FROM agent_log WHERE seq = 3");
    database = await two.store.open("x");
    for (const value of [3, 4]) await writeRow(database, value);
    await database.close();
    one.store.ownership.rejoined();
    database = await one.store.open("x");
    expect(readRows(database)).toEqual([1, 3, 4]);
    expect(one.store.ownership.figures).toMatchObject({ cacheHits: 0, restores: 1 });
    await database.close();
  });

  it("that were open when the node was killed are not used", async () => {
    const { store } = await start("one");
    let database = await store.open("x");
    await writeRow(database, 1);
    await database.close();
    database = await store.open("x");
    await writeRow(database, 2);
    commitRow(database, 3);
    cpSync(join(folder, "one"), join(folder, "killed"), { recursive: true });
    const after = (await start("killed")).store;
    const restored = await after.open("x");
    expect(readRows(restored)).toEqual([1, 2]);
    expect(after.ownership.figures).toMatchObject({ cacheHits: 0, restores: 1 });
    await restored.close();
    await database.close();
  });

  it("have a limited size together: those that were closed first are removed", async () => {
    const { store } = await start("one", { maxCacheBytes: 15_000 });
    for (const name of ["a", "b", "c", "d", "e", "f"]) {
      const database = await store.open(name);
      await writeRow(database, 1);
      await database.close();
    }
    const files = globSync(join(folder, "one/??/*.db"));
    expect(files.length).toBeGreaterThan(0);
    expect(files.length).toBeLessThan(6);
    const database = await store.open("a");
    expect(readRows(database)).toEqual([1]);
    await database.close();
  });

  it("are never those of another engine", async () => {
    mkdirSync(join(folder, "one/ab"), { recursive: true });
    writeFileSync(join(folder, "one/ab/abc.db"), "the only copy");
    await expect(start("one")).rejects.toThrow("holds databases of another engine");
    expect(existsSync(join(folder, "one/ab/abc.db"))).toBe(true);
  });
});

/** Changes many pages in several parts. */
function grow(database: InstanceDatabase, i: number): void {
  database.begin();
  database.run(rawSql("CREATE TABLE IF NOT EXISTS big (id INTEGER PRIMARY KEY, text TEXT)"));
  const text = Array.from({ length: 300 }, (_, n) => (n * 7919 * (i + 1)).toString(36)).join("");
  for (let row = 0; row < 8; row++)
    database.run(sql`INSERT OR REPLACE INTO big VALUES (${(i * 37 + row) % 300}, ${text + row})`);
  database.commit();
}

function shrink(database: InstanceDatabase): void {
  database.begin();
  database.run(rawSql("CREATE TABLE IF NOT EXISTS big (id INTEGER PRIMARY KEY, text TEXT)"));
  database.run(rawSql("DELETE FROM big WHERE id % 3 > 0"));
  database.commit();
}

function fail(error: Error): never {
  throw error;
}
