/** The journal and its replay: a process that ends at any point leaves files that the next process completes. */
import fs, {
  appendFileSync,
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { setImmediate as nextLoop } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { commitRow, readRows, useInstanceDisks, writeRow } from "../instance-disks-fixture.ts";
import { rawSql, sql } from "../../../core/sql.ts";
import type { JournalStore } from "./journal-store.ts";
import { readRecords } from "./journal-records.ts";

const disks = useInstanceDisks();

async function readOf(files: JournalStore, name: string): Promise<number[]> {
  const database = await files.open(name);
  const values = readRows(database);
  await database.close();
  return values;
}

const segmentsOf = (name: string) => readdirSync(join(disks.folder, name, "agents/journal")).toSorted();
const filesOf = (name: string, end: string) =>
  readdirSync(join(disks.folder, name, "agents"), { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(end),
  );

/** A disk on which every file except the journal has the state of the copy `from`. */
function cutTo(from: string, journalOf: string, target: string): void {
  cpSync(join(disks.folder, from), join(disks.folder, target), { recursive: true });
  rmSync(join(disks.folder, target, "agents/journal"), { recursive: true });
  cpSync(join(disks.folder, journalOf, "agents/journal"), join(disks.folder, target, "agents/journal"), {
    recursive: true,
  });
}

describe("the replay of a journal", () => {
  it("restores instances whose files never reached the disk", async () => {
    const files = disks.open("one");
    const database = await files.open("x");
    disks.copy("one", "before");
    await writeRow(database, 1);
    await writeRow(database, 2);
    cutTo("before", "one", "cut");
    for (const file of filesOf("cut", ".db")) rmSync(join(disks.folder, "cut/agents", file));
    expect(await readOf(disks.open("cut"), "x")).toEqual([1, 2]);
    await database.close();
    await files.close();
  });

  it("restores files of which the disk has only some pages", async () => {
    const files = disks.open("one");
    const database = await files.open("x");
    await writeRow(database, 1);
    disks.copy("one", "before");
    for (let i = 2; i < 300; i++) await writeRow(database, i);
    await database.close();
    cutTo("one", "one", "cut");
    const [file = ""] = filesOf("cut", ".db");
    const now = readFileSync(join(disks.folder, "cut/agents", file));
    const old = readFileSync(join(disks.folder, "before/agents", file));
    // Every other page has its old content, or zeros.
    for (let page = 0; page * 1024 < now.length; page += 2) {
      const start = page * 1024;
      now.fill(0, start, start + 1024);
      if (start < old.length) old.copy(now, start, start, start + 1024);
    }
    writeFileSync(join(disks.folder, "cut/agents", file), now);
    const values = await readOf(disks.open("cut"), "x");
    expect([values.length, values[0], values.at(-1)]).toEqual([299, 1, 299]);
    await files.close();
  });

  it("ignores an incomplete record and an instance without a commit", async () => {
    const files = disks.open("one");
    const database = await files.open("x");
    await writeRow(database, 1);
    const uncommitted = await files.open("uncommitted");
    const [segment = ""] = segmentsOf("one");
    const { end } = readRecords(readFileSync(join(disks.folder, "one/agents/journal", segment)), 1);
    await writeRow(database, 2);
    disks.copy("one", "cut");
    const path = join(disks.folder, "cut/agents/journal", segment);
    truncateSync(path, end + 100);
    const cut = disks.open("cut");
    expect(filesOf("cut", ".db")).toHaveLength(1);
    expect(await readOf(cut, "x")).toEqual([1]);
    const again = await cut.open("uncommitted");
    expect(again.isNew).toBe(true);
    await again.close();
    await cut.close();
    for (const open of [database, uncommitted]) await open.close();
    await files.close();
  });

  it("does not restore a destroyed instance, and keeps it apart from its successor", async () => {
    const files = disks.open("one");
    const first = await files.open("x");
    await writeRow(first, 1);
    await first.close();
    disks.copy("one", "before");
    await files.destroy("x");
    disks.copy("one", "destroyed");
    const second = await files.open("x");
    await writeRow(second, 2);
    disks.copy("one", "created");
    cutTo("before", "destroyed", "cut");
    disks.open("cut");
    expect(filesOf("cut", ".db")).toEqual([]);
    cutTo("before", "created", "cut-again");
    expect(await readOf(disks.open("cut-again"), "x")).toEqual([2]);
    await second.close();
    await files.close();
  });

  it("can be repeated", async () => {
    const files = disks.open("one");
    const database = await files.open("x");
    await writeRow(database, 1);
    await database.close();
    disks.copy("one", "disk-2");
    for (let i = 2; i < 5; i++) {
      // One process is killed right after its start, the next one after a write.
      disks.open(`disk-${i}`);
      disks.copy(`disk-${i}`, `started-${i}`);
      const woken = await disks.open(`started-${i}`).open("x");
      await writeRow(woken, i);
      disks.copy(`started-${i}`, `disk-${i + 1}`);
      await woken.close();
    }
    expect(await readOf(disks.open("disk-5"), "x")).toEqual([1, 2, 3, 4]);
  });

  it("is refused if a segment other than the newest is damaged", async () => {
    const files = disks.open("one", 1);
    const database = await files.open("x");
    for (let i = 0; i < 3; i++) commitRow(database, i);
    disks.copy("one", "cut");
    const journal = join(disks.folder, "cut/agents/journal");
    const [segment = ""] = readdirSync(journal);
    copyFileSync(join(journal, segment), join(journal, "0000009999.log"));
    appendFileSync(join(journal, segment), "damage");
    expect(() => disks.open("cut")).toThrow("is damaged after");
    await database.close();
    await files.close();
  });
});

describe("segments", () => {
  it("are removed when their instances are checkpointed, open or closed", async () => {
    const files = disks.open("one", 4096);
    const closed = await files.open("closed");
    await writeRow(closed, 1);
    await closed.close();
    const busy = await files.open("busy");
    for (let i = 0; i < 100; i++) {
      commitRow(busy, i);
      const synced = busy.sync();
      // There is always a commit that the sync does not cover.
      commitRow(busy, i);
      await synced;
    }
    await expect.poll(() => segmentsOf("one").length).toBeLessThan(4);
    expect(segmentsOf("one")[0]).not.toBe("0000000001.log");
    disks.copy("one", "cut");
    rmSync(join(disks.folder, "cut/agents/journal"), { recursive: true });
    expect(await readOf(disks.open("cut"), "closed")).toEqual([1]);
    await busy.close();
    await files.close();
    expect(segmentsOf("one")).toEqual([]);
    expect(await readOf(disks.open("one"), "busy")).toHaveLength(200);
  });

  it("are independent of the WAL, which does not grow without limit", async () => {
    const files = disks.open("one");
    const database = await files.open("x");
    const text = "x".repeat(500_000);
    database.begin();
    database.run(rawSql("CREATE TABLE big (id INTEGER PRIMARY KEY, text TEXT)"));
    database.commit();
    for (let i = 0; i < 60; i++) {
      database.begin();
      database.run(sql`INSERT OR REPLACE INTO big VALUES (1, ${text + i})`);
      database.commit();
      await database.sync();
      await nextLoop();
    }
    const [log = ""] = filesOf("one", ".db-wal");
    expect(readFileSync(join(disks.folder, "one/agents", log)).length).toBeLessThan(12 * 2 ** 20);
    await database.close();
    await files.close();
  });

  it("are kept while too many files are open to checkpoint their instances", async () => {
    const files = disks.open("one", 1);
    const database = await files.open("x");
    const { openSync } = fs;
    // Tests cannot use up the descriptors of the machine.
    fs.openSync = ((path: string, flags: string, ...rest: []) => {
      if (path.endsWith(".db"))
        throw Object.assign(new Error("EMFILE: too many open files, open"), { code: "EMFILE" });
      return openSync(path, flags, ...rest);
    }) as typeof fs.openSync;
    syncBuiltinESMExports();
    try {
      for (let i = 0; i < 20; i++) await writeRow(database, i);
      expect(segmentsOf("one").length).toBeGreaterThan(1);
    } finally {
      fs.openSync = openSync;
      syncBuiltinESMExports();
    }
    await database.close();
    await files.close();
    expect(segmentsOf("one")).toEqual([]);
    expect(await readOf(disks.open("one"), "x")).toHaveLength(20);
  });

  it("wait for room on a full disk and lose no record", async () => {
    const onStall = vi.fn();
    const files = disks.open("one", undefined, onStall);
    const database = await files.open("x");
    await writeRow(database, 1);
    const writeSync = fs.writeSync;
    // Tests cannot fill the disk of the machine.
    fs.writeSync = () => {
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    };
    syncBuiltinESMExports();
    let isSynced = false;
    try {
      const synced = writeRow(database, 2).then(() => (isSynced = true));
      await expect.poll(() => onStall.mock.calls.length).toBe(1);
      expect(() => commitRow(database, 3)).toThrow("the disk is full");
      expect(files.problem).toContain("the journal waits for room");
      expect(isSynced).toBe(false);
      fs.writeSync = writeSync;
      syncBuiltinESMExports();
      await synced;
    } finally {
      fs.writeSync = writeSync;
      syncBuiltinESMExports();
    }
    expect(files.problem).toBeNull();
    await writeRow(database, 4);
    disks.copy("one", "cut");
    expect(await readOf(disks.open("cut"), "x")).toEqual([1, 2, 4]);
    await database.close();
  });
});
