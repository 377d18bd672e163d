/** What every engine of the instance store must do; the numbers are those of the invariants in `instance-store.ts`. */
import fs, { readdirSync, statSync } from "node:fs";
import { hash } from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { rawSql, sql } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/connection.ts";
import {
  commitRow,
  type OpenStore,
  readRows,
  rowsOf,
  type TestedEngine,
  useInstanceDisks,
  writeRow,
} from "./instance-disks-fixture.ts";
import type { InstanceDatabase, InstanceStore } from "./instance-store.ts";

const NAME = "x";
const SCHEMA = "CREATE TABLE own (x INTEGER);";
const QUERY_LIMITS = {
  maxBytes: 1024,
  maxMemoryBytes: 512 * 1024 * 1024,
  maxRows: 10,
  timeoutMs: 20_000,
};

const tablesOf = (database: InstanceDatabase) =>
  database
    .all<{ name: string }>(sql`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`)
    .map(({ name }) => name);

export function testInstanceStore(engine: TestedEngine, openStore?: OpenStore): void {
  const disks = useInstanceDisks(openStore);
  const start = (disk = "one") => disks.start(engine, disk);
  /** Starts a process on a copy of the disk, as after a kill of the process that uses the disk. */
  let crashes = 0;
  const restart = (disk = "one") => {
    crashes += 1;
    disks.copy(disk, `crash-${crashes}`);
    return start(`crash-${crashes}`);
  };

  describe("a database", () => {
    it("is created by the first open, with the base tables and those of its schema", async () => {
      const store = await start();
      const database = await store.open(NAME, SCHEMA);
      expect([database.isNew, tablesOf(database)]).toEqual([true, ["_base_meta", "own"]]);
      await database.close();
      const again = await store.open(NAME, "CREATE TABLE later (x INTEGER);");
      expect([again.isNew, tablesOf(again)]).toEqual([false, ["_base_meta", "own"]]);
      await again.close();
    });

    it("is not created if SQLite rejects the schema", async () => {
      const store = await start();
      await expect(store.open(NAME, "CREATE TABEL own (x)")).rejects.toThrow("syntax error");
      expect(disks.filesOf("one", "*.db")).toEqual([]);
      const database = await store.open(NAME);
      expect(database.isNew).toBe(true);
      await database.close();
    });

    it("is opened once at a time", async () => {
      const store = await start();
      const database = await store.open(NAME);
      await expect(store.open(NAME)).rejects.toThrow("is open already");
      await database.close();
    });

    it("is a file named by a hash of the instance's name, for its owner only, and without a WAL when closed", async () => {
      const store = await start();
      const names = ["x", "X", "../x", "a\0b", "é".repeat(10_000), ""];
      for (const name of names) await writeRowTo(await store.open(name));
      const paths = names.map((name) => {
        const id = hash("sha256", name).slice(0, 40);
        return join("one/agents", id.slice(0, 2), `${id}.db`);
      });
      expect(disks.filesOf("one", "*.db").toSorted()).toEqual(paths.toSorted());
      expect(disks.filesOf("one", "*.db-wal")).toEqual([]);
      for (const path of paths) expect(statSync(join(disks.folder, path)).mode & 0o777).toBe(0o600);
    });

    it("does not exist after destroy; destroying it again does nothing", async () => {
      const store = await start();
      await writeRowTo(await store.open(NAME));
      await store.destroy(NAME);
      await store.destroy(NAME);
      expect(disks.filesOf("one", "*.db")).toEqual([]);
      const database = await store.open(NAME);
      expect([database.isNew, readRows(database)]).toEqual([true, []]);
      await database.close();
    });
  });

  describe("a replaced content", () => {
    const read = async (store: InstanceStore) => {
      const database = await store.open(NAME);
      const found = [readRows(database), tablesOf(database), database.get(rawSql("PRAGMA integrity_check"))];
      await database.close();
      return found;
    };

    it("is that of the snapshot with what its statements changed, larger or smaller, and survives a crash", async () => {
      const store = await start();
      const database = await store.open(NAME);
      await writeRow(database, 1);
      const small = database.snapshot();
      database.begin();
      database.run(rawSql("CREATE TABLE large (x BLOB)"));
      for (let i = 0; i < 50; i++) database.run(sql`INSERT INTO large VALUES (${new Uint8Array(5000)})`);
      database.commit();
      await writeRow(database, 2);
      const large = database.snapshot();
      await expect(store.replace(NAME, small)).rejects.toThrow("is open");
      await database.close();

      await store.replace(NAME, small, [sql`INSERT INTO t VALUES (${7})`]);
      const ok = { integrity_check: "ok" };
      const crashed = await restart();
      expect(await read(crashed)).toEqual([[1, 7], ["_base_meta", "t"], ok]);
      await crashed.replace(NAME, large);
      const again = await crashed.open(NAME);
      await writeRow(again, 3);
      await again.close();
      expect(await read(crashed)).toEqual([[1, 2, 3], ["_base_meta", "large", "t"], ok]);
    });

    it("is refused for a database that does not exist, and for bytes that are none", async () => {
      const store = await start();
      await expect(store.replace(NAME, new Uint8Array(4096))).rejects.toThrow("has no database");
      await writeRowTo(await store.open(NAME));
      await expect(store.replace(NAME, new Uint8Array(4096).fill(7))).rejects.toThrow();
      expect(await rowsOf(store, NAME)).toEqual([1]);
    });
  });

  it("a database that is open is not destroyed, and one that is being destroyed is not opened", async () => {
    const store = await start();
    const database = await store.open(NAME);
    await writeRow(database, 1);
    await expect(store.destroy(NAME)).rejects.toThrow("is open");
    await database.close();
    const destroyed = store.destroy(NAME);
    await expect(store.open(NAME)).rejects.toThrow("is open");
    await destroyed;
    const successor = await store.open(NAME);
    expect(successor.isNew).toBe(true);
    await successor.close();
  });

  describe("a transaction (invariant 2)", () => {
    it("sees its own writes, and leaves nothing after a rollback", async () => {
      const store = await start();
      const database = await store.open(NAME, SCHEMA);
      database.rollback();
      database.begin();
      expect(database.run(sql`INSERT INTO own VALUES (1), (2)`)).toEqual({ changes: 2 });
      expect(database.get(sql`SELECT count(*) AS n FROM own`)).toEqual({ n: 2 });
      database.rollback();
      expect(database.get(sql`SELECT count(*) AS n FROM own`)).toEqual({ n: 0 });
      await database.close();
    });

    it("that was committed is kept by a close without a sync", async () => {
      const store = await start();
      const database = await store.open(NAME);
      commitRow(database, 1);
      await database.close();
      expect(await rowsOf(store, NAME)).toEqual([1]);
    });

    it("that was not committed is gone after a crash", async () => {
      const database = await (await start()).open(NAME);
      await writeRow(database, 1);
      database.begin();
      database.run(sql`INSERT INTO t VALUES (2)`);
      expect(await rowsOf(await restart(), NAME)).toEqual([1]);
      database.rollback();
      await database.close();
    });

    it("that SQLite has rolled back by itself ends with the reason, and nothing runs outside of it", async () => {
      const store = await disks.start(engine, "one", { onStall: () => undefined });
      const database = await store.open(NAME);
      await writeRow(database, 1);
      // SQLite finds no room for another page, as on a full disk.
      database.run(rawSql("PRAGMA max_page_count = 1"));
      database.begin();
      database.run(sql`INSERT INTO t VALUES (2)`);
      database.run(rawSql("SAVEPOINT inner"));
      expect(() => database.run(sql`INSERT INTO t VALUES (zeroblob(1000000))`)).toThrow("the disk is full");
      expect(() => database.run(sql`INSERT INTO t VALUES (3)`)).toThrow("the disk is full");
      expect(() => database.guardedStatement(["INSERT INTO t VALUES (4)"]).all([])).toThrow(
        "the disk is full",
      );
      expect(() => database.run(rawSql("ROLLBACK TO inner"))).toThrow("the disk is full");
      expect(() => database.commit()).toThrow("the disk is full");
      database.rollback();
      expect(readRows(database)).toEqual([1]);
      await expect.poll(() => store.problem).toBeNull();
      await writeRow(database, 5);
      expect(readRows(database)).toEqual([1, 5]);
      await database.close();
    });
  });

  describe("after a crash (invariants 3 and 5)", () => {
    it("synced and flushed commits are there, again and again", async () => {
      let store = await start();
      for (let round = 0; round < 3; round++) {
        const database = await store.open(NAME);
        expect(readRows(database)).toHaveLength(2 * round);
        await writeRow(database, 1);
        commitRow(database, 2);
        await database.flush();
        const next = await restart(round === 0 ? "one" : `crash-${crashes}`);
        await database.close();
        store = next;
      }
      expect(await rowsOf(store, NAME)).toEqual([1, 2, 1, 2, 1, 2]);
    });

    it("a database without a commit does not exist", async () => {
      const store = await start();
      const database = await store.open(NAME, SCHEMA);
      await database.sync();
      const created = await (await restart()).open(NAME);
      expect([created.isNew, tablesOf(created)]).toEqual([true, ["_base_meta"]]);
      for (const open of [database, created]) await open.close();
    });

    it("a destroyed database is gone, and its successor has only its own rows", async () => {
      const store = await start();
      await writeRowTo(await store.open(NAME));
      await store.destroy(NAME);
      const destroyed = await restart();
      expect(disks.filesOf(`crash-${crashes}`, "*.db")).toEqual([]);
      expect(await rowsOf(destroyed, NAME)).toEqual([]);
      const successor = await store.open(NAME);
      await writeRow(successor, 7);
      expect(await rowsOf(await restart(), NAME)).toEqual([7]);
      await successor.close();
    });
  });

  describe("reading", () => {
    it("a snapshot of an open database, in another process", async () => {
      const store = await start();
      const database = await store.open(NAME);
      commitRow(database, 41);
      const query = (text: string) => store.queryReadOnly(database.snapshot(), text, QUERY_LIMITS);
      expect(await query("SELECT x + 1 AS y FROM t")).toEqual({ rows: [{ y: 42 }], isCut: false });
      await expect(query("DELETE FROM t")).rejects.toThrow("only reading is allowed");
      await database.close();
    });
  });

  describe("statements of foreign code", () => {
    const parts = (text: string) => [text];

    it("may have text in double quotes, also in a view that is read elsewhere", async () => {
      const store = await start();
      const database = await store.open(NAME, SCHEMA);
      database.begin();
      const run = (text: string) => database.guardedStatement(parts(text)).allRaw([]).rows;
      expect(run('CREATE VIEW v AS SELECT "some text" AS x; SELECT x FROM v WHERE x <> "other"')).toEqual([
        ["some text"],
      ]);
      database.commit();
      const found = await store.queryReadOnly(database.snapshot(), "SELECT x FROM v", QUERY_LIMITS);
      expect(found.rows).toEqual([{ x: "some text" }]);
      await database.close();
      const stored = await store.openToRead(NAME);
      expect(stored.get(sql`SELECT x FROM v`)).toEqual({ x: "some text" });
      await stored.close();
    });

    it("run, report what they do, and cannot use reserved names", async () => {
      const store = await start();
      const database = await store.open(NAME, SCHEMA);
      database.begin();
      const insert = database.guardedStatement(["INSERT INTO own VALUES (", ")"]);
      expect([insert.isWrite, insert.mayInsert("own"), insert.mayInsert("t")]).toEqual([true, true, false]);
      insert.all([9007199254740993n]);
      const select = database.guardedStatement(parts("SELECT x FROM own"));
      expect([select.isWrite, select.all([]).map((row) => ({ ...row }))]).toEqual([
        false,
        [{ x: 9007199254740993n }],
      ]);
      const before = database.tableChanges;
      database.guardedStatement(parts("CREATE TABLE a (x); CREATE TABLE b (x)")).all([]);
      expect(database.tableChanges).toBe(before + 2);
      database.commit();
      for (const text of [
        "DELETE FROM _base_meta",
        "CREATE TABLE _base_x (x)",
        "ALTER TABLE own RENAME TO _base",
      ])
        expect(() => database.guardedStatement(parts(text))).toThrow("belongs to the runtime");
      expect(() => database.guardedStatement(parts("COMMIT"))).toThrow("transactions are the runtime's");
      expect(() => database.guardedStatement(parts("SELEC"))).toThrow("syntax error");
      await database.close();
    });
  });

  describe("on a full disk (invariant 4)", () => {
    afterEach(() => void vi.restoreAllMocks());

    it("nothing begins, closed databases can be read, and writing resumes by itself", async () => {
      const onStall = vi.fn();
      const store = await disks.start(engine, "one", { onStall });
      await writeRowTo(await store.open("closed"));
      const database = await store.open(NAME);
      await writeRow(database, 1);
      const makeRoom = fillDisk();
      database.begin();
      expect(() => database.run(sql`INSERT INTO t VALUES (2)`)).toThrow("the disk is full");
      database.rollback();
      expect(() => database.begin()).toThrow("the disk is full");
      await expect(store.open("other")).rejects.toThrow("the disk is full");
      expect(() => store.requireRoom()).toThrow("the disk is full");
      expect([store.problem, onStall.mock.calls.length]).toEqual(["the disk is full", 1]);
      const closed = await store.openToRead("closed");
      expect([readRows(closed), readRows(database)]).toEqual([[1], [1]]);
      expect(() => closed.begin()).toThrow("opened for reading");
      await closed.close();
      makeRoom();
      await expect.poll(() => store.problem).toBeNull();
      await writeRow(database, 2);
      expect(readRows(database)).toEqual([1, 2]);
      await database.close();
    });
  });

  it("an orderly stop leaves only the databases", async () => {
    const store = await start();
    await writeRowTo(await store.open(NAME));
    await store.close();
    expect(
      readdirSync(join(disks.folder, "one/agents")).filter(
        (name) => !/^([0-9a-f]{2}|journal|cache)$/.test(name),
      ),
    ).toEqual([]);
    expect(disks.filesOf("one", "*.db-wal")).toEqual([]);
  });
}

async function writeRowTo(database: InstanceDatabase): Promise<void> {
  await writeRow(database, 1);
  await database.close();
}

/** Tests cannot fill the disk of the machine: inserts and the probe fail until the returned function is called. */
function fillDisk(): () => void {
  const { run } = SqliteConnection.prototype;
  const spy = vi.spyOn(SqliteConnection.prototype, "run").mockImplementation(function (
    this: SqliteConnection,
    query,
  ) {
    if (!query.parts[0]?.startsWith("INSERT")) return run.call(this, query);
    throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
  });
  const { writeFileSync } = fs;
  fs.writeFileSync = () => {
    throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  };
  syncBuiltinESMExports();
  const makeRoom = () => {
    spy.mockRestore();
    fs.writeFileSync = writeFileSync;
    syncBuiltinESMExports();
  };
  // Also if the test fails before: later files run in the same process.
  onTestFinished(makeRoom);
  return makeRoom;
}
