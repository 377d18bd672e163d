/** Either engine opens what the other one wrote, after an orderly stop and after a crash. */
import { copyFileSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { commitRow, readRows, rowsOf, useInstanceDisks, writeRow } from "./instance-disks-fixture.ts";
import type { InstanceStore } from "./instance-store.ts";

const disks = useInstanceDisks();
const agents = (disk: string) => join(disks.folder, disk, "agents");

const ENGINES = [
  ["journal", "plain"],
  ["plain", "journal"],
] as const;

it.each(ENGINES)(
  "the data of the %s engine is opened by the %s engine after an orderly stop",
  async (first, second) => {
    for (const [round, engine] of [first, second, first, second].entries()) {
      const store = await disks.start(engine, "one");
      const database = await store.open("x", "CREATE TABLE own (x INTEGER);");
      expect([database.isNew, readRows(database)]).toEqual([round === 0, [0, 1, 2, 3].slice(0, round)]);
      await writeRow(database, round);
      await database.close();
      await store.close();
    }
  },
);

it.each(ENGINES)(
  "the data of the %s engine is opened by the %s engine after a crash",
  async (first, second) => {
    const store = await disks.start(first, "one");
    const names = ["a", "b", "c"];
    const left = [await store.open("uncommitted")];
    for (const name of names) {
      const database = await store.open(name);
      for (let i = 0; i < 5; i++) await writeRow(database, i);
      if (name === "c") await database.close();
      else left.push(database);
    }
    disks.copy("one", "crash");
    const next = await disks.start(second, "crash");
    for (const name of names) expect(await rowsOf(next, name)).toEqual([0, 1, 2, 3, 4]);
    const again = await next.open("uncommitted");
    expect(again.isNew).toBe(true);
    await again.close();
    await next.close();
    for (const database of left) await database.close();
    expect(readdirSync(disks.journalOf("crash"), { recursive: true })).toEqual([]);
    expect(disks.filesOf("crash", "*.db-wal")).toEqual([]);
  },
);

it("WAL files that a crash of the journal engine left are not read by the plain engine", async () => {
  const { disk } = await leaveStaleWal();
  expect(await rowsOf(await disks.start("plain", disk), "x")).toEqual([1, 2, 3]);
  expect(existsSync(join(agents(disk), "spare-wal"))).toBe(false);
});

it("the plain engine does not start on a journal that is damaged", async () => {
  const store = await disks.start("journal", "one");
  await writeRowAndClose(store);
  await store.close();
  mkdirSync(join(disks.journalOf("one"), "0000000001.log"));
  await expect(disks.start("plain", "one")).rejects.toThrow("EISDIR");
});

/** A disk whose database has rows 1, 2, 3 in the main file and a WAL with only row 1. */
async function leaveStaleWal(): Promise<{ disk: string }> {
  const store = await disks.start("journal", "one");
  const database = await store.open("x");
  await writeRow(database, 1);
  disks.copy("one", "killed");
  const killed = await disks.start("journal", "killed");
  const [wal = ""] = disks.filesOf("one", "*.db-wal");
  const woken = await killed.open("x");
  for (const value of [2, 3]) await writeRow(woken, value);
  await woken.close();
  disks.copy("killed", "stale");
  const path = join(disks.folder, wal);
  copyFileSync(path, path.replace("/one/", "/stale/"));
  commitRow(database, 9);
  await database.close();
  return { disk: "stale" };
}

async function writeRowAndClose(store: InstanceStore): Promise<void> {
  const database = await store.open("x");
  await writeRow(database, 1);
  await database.close();
}
