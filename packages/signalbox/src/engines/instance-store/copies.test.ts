/** Copies of databases that are in use: each is a whole database as of a commit, and the instance goes on. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { rawSql, sql } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";
import { useInstanceDisks } from "./instance-disks-fixture.ts";
import type { InstanceDatabase, LocalInstanceStore } from "./instance-store.ts";

const disks = useInstanceDisks();
const ENGINES = ["journal", "plain"] as const;
const SCHEMA = "CREATE TABLE own (x INTEGER); CREATE TABLE pair (a INTEGER, b BLOB);";
const start = async (engine: (typeof ENGINES)[number]) =>
  (await disks.start(engine, "one")) as LocalInstanceStore;
const target = (name: string) => join(disks.folder, name);

function readCopy<Row>(path: string, text: string): Row[] {
  const connection = SqliteConnection.open(path, { readOnly: true });
  try {
    expect(connection.all(rawSql("PRAGMA integrity_check"))).toEqual([{ integrity_check: "ok" }]);
    return connection.all<Row>(rawSql(text));
  } finally {
    connection.close();
  }
}

function idOf(store: LocalInstanceStore): string {
  const [id = ""] = store.listIds();
  return id;
}

async function writeRow(database: InstanceDatabase, x: number): Promise<void> {
  database.begin();
  database.run(sql`INSERT INTO own (x) VALUES (${x})`);
  database.commit();
  await database.sync();
}

/** Writes two rows that belong together, one of them large. */
function writePair(database: InstanceDatabase, i: number): void {
  database.begin();
  database.run(sql`INSERT INTO pair (a, b) VALUES (${i}, ${new Uint8Array(200_000)})`);
  database.run(sql`INSERT INTO own (x) VALUES (${i})`);
  database.commit();
}

it.each(ENGINES)("of an open and of a closed database have the last commit (%s)", async (engine) => {
  const store = await start(engine);
  const database = await store.open("x", SCHEMA);
  for (let i = 0; i < 3; i++) await writeRow(database, i);
  const id = idOf(store);
  database.begin();
  database.run(sql`INSERT INTO own (x) VALUES (99)`);
  const copying = store.copy(id, target("open.db"));
  database.rollback();
  expect(await copying).toBe(true);
  expect(readCopy(target("open.db"), "SELECT x FROM own")).toEqual([{ x: 0 }, { x: 1 }, { x: 2 }]);
  await writeRow(database, 3);
  const closing = database.close();
  expect(await store.copy(id, target("closing.db"))).toBe(true);
  await closing;
  expect(await store.copy(id, target("closed.db"))).toBe(true);
  for (const name of ["closing.db", "closed.db"])
    expect(readCopy(target(name), "SELECT count(*) AS count FROM own")).toEqual([{ count: 4 }]);
});

it.each(ENGINES)("do not exist for a database without a commit, or one that is gone (%s)", async (engine) => {
  const store = await start(engine);
  const database = await store.open("x", SCHEMA);
  await writeRow(database, 1);
  await database.close();
  const id = idOf(store);
  await store.destroy("x");
  expect(await store.copy(id, target("gone.db"))).toBe(false);
  expect(existsSync(target("gone.db"))).toBe(false);
});

it.each(ENGINES)("are whole while an instance writes and is checkpointed (%s)", async (engine) => {
  const store = await start(engine);
  const database = await store.open("x", SCHEMA);
  writePair(database, 0);
  await database.sync();
  const id = idOf(store);
  let isDone = false;
  let written = 1;
  const writing = (async () => {
    // The WAL is checkpointed after 8 MiB.
    while (written < 60 || (!isDone && written < 300)) {
      writePair(database, written++);
      await database.sync();
    }
  })();
  const copyAndCheck = async (i: number) => {
    const before = written;
    // Two at once must not disturb each other.
    await Promise.all([store.copy(id, target(`${i}-a.db`)), store.copy(id, target(`${i}-b.db`))]);
    for (const name of [`${i}-a.db`, `${i}-b.db`]) {
      const [row] = readCopy<{ own: number; pairs: number }>(
        target(name),
        "SELECT (SELECT count(*) FROM own) AS own, (SELECT count(*) FROM pair) AS pairs",
      );
      expect(row?.own).toBe(row?.pairs);
      expect(row?.own).toBeGreaterThanOrEqual(before);
    }
  };
  try {
    for (let i = 0; i < 6; i++) await copyAndCheck(i);
  } finally {
    isDone = true;
    await writing;
  }
  await database.close();
  const again = await store.open("x");
  expect(again.get(sql`SELECT count(*) AS count FROM own`)).toEqual({ count: written });
  await again.close();
});

it.each(ENGINES)("of a closed database delay an open until they have ended (%s)", async (engine) => {
  const store = await start(engine);
  const database = await store.open("x", SCHEMA);
  writePair(database, 0);
  await database.close();
  const copying = store.copy(idOf(store), target("copy.db"));
  const again = await store.open("x");
  for (let i = 1; i < 5; i++) writePair(again, i);
  await again.close();
  expect(await copying).toBe(true);
  expect(readCopy(target("copy.db"), "SELECT count(*) AS count FROM pair")).toEqual([{ count: 1 }]);
});

it.each(ENGINES)("a small closed database can be read in place of a copy (%s)", async (engine) => {
  const store = await start(engine);
  const database = await store.open("x", SCHEMA);
  await writeRow(database, 1);
  const id = idOf(store);
  const read = (maxBytes = 1_000_000) => store.readClosed(id, maxBytes);
  expect(await read()).toBeNull();
  const closing = database.close();
  await closing;
  const bytes = await read();
  writeFileSync(target("read.db"), bytes ?? new Uint8Array(0));
  expect(readCopy(target("read.db"), "SELECT x FROM own")).toEqual([{ x: 1 }]);
  expect(await read((bytes?.length ?? 0) - 1)).toBeNull();
  await store.destroy("x");
  expect(await read()).toBeNull();
});

it.each(ENGINES)("a read of a closed database delays an open until it has ended (%s)", async (engine) => {
  const store = await start(engine);
  const database = await store.open("x", SCHEMA);
  await writeRow(database, 1);
  await database.close();
  const reads = [store.readClosed(idOf(store), 1_000_000), store.readClosed(idOf(store), 1_000_000)];
  const again = await store.open("x", SCHEMA);
  await writeRow(again, 2);
  await again.close();
  for (const bytes of await Promise.all(reads)) {
    if (bytes === null) continue;
    writeFileSync(target("read.db"), bytes);
    expect(readCopy(target("read.db"), "SELECT count(*) AS count FROM own")).toEqual([{ count: 1 }]);
  }
  expect(await reads[0]).not.toBeNull();
});

it("a database whose last commits are in a WAL beside it is not read without them", async () => {
  const store = await start("plain");
  const database = await store.open("x", SCHEMA);
  await writeRow(database, 1);
  await database.close();
  expect(await store.readClosed(idOf(store), 1_000_000)).not.toBeNull();
  const [file = ""] = disks.filesOf("one", "*.db");
  writeFileSync(`${target(file)}-wal`, "");
  expect(await store.readClosed(idOf(store), 1_000_000)).toBeNull();
});
