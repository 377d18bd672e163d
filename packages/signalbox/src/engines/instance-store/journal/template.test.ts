/** Instances with a schema: their template is in the journal, wherever the process ends. */
import fs, { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { TEST_SCHEMA, useInstanceDisks } from "../instance-disks-fixture.ts";
import type { InstanceDatabase } from "../instance-store.ts";
import { sql } from "../../../core/sql.ts";
import type { JournalStore } from "./journal-store.ts";
import { Templates } from "./template.ts";
import { NO_ID, readRecords, RECORD_KINDS, RecordBuffer } from "./journal-records.ts";

/** Every record starts another segment. */
const TINY = 1;
const NOTES = "CREATE TABLE notes (x INTEGER, y TEXT); CREATE INDEX notes_by_y ON notes (y);";
const MARKS = "CREATE TABLE marks (x INTEGER);";

const disks = useInstanceDisks();
const templates = new Templates(TEST_SCHEMA);

const removeDatabases = (disk: string) => {
  for (const file of readdirSync(join(disks.folder, disk, "agents"), { recursive: true, encoding: "utf8" }))
    if (file.endsWith(".db")) rmSync(join(disks.folder, disk, "agents", file));
};

/** Commits and syncs one row, which changes no schema. */
async function writeTo(database: InstanceDatabase, table: "notes" | "marks" | "_base_meta"): Promise<void> {
  database.begin();
  if (table === "notes") database.run(sql`INSERT INTO notes VALUES (1, 'one')`);
  else if (table === "marks") database.run(sql`INSERT INTO marks VALUES (1)`);
  else database.run(sql`INSERT INTO _base_meta VALUES ('key', 'value')`);
  database.commit();
  await database.sync();
}

async function tablesOf(files: JournalStore, name: string): Promise<string[]> {
  const database = await files.open(name);
  expect(database.isNew).toBe(false);
  const names = database
    .all<{ name: string }>(
      sql`SELECT name FROM sqlite_schema WHERE tbl_name IN ('notes', 'marks') ORDER BY name`,
    )
    .map((row) => row.name);
  expect(database.get(sql`PRAGMA integrity_check`)).toEqual({ integrity_check: "ok" });
  await database.close();
  return names;
}

describe("an instance with a schema", () => {
  it("is restored with its tables if only the journal reached the disk", async () => {
    const files = disks.open("one");
    const plain = await files.open("plain");
    const noted = await files.open("noted", NOTES);
    const marked = await files.open("marked", MARKS);
    expect([plain.isNew, noted.isNew, marked.isNew]).toEqual([true, true, true]);
    await writeTo(noted, "notes");
    await writeTo(marked, "marks");
    await writeTo(plain, "_base_meta");
    disks.copy("one", "cut");
    removeDatabases("cut");
    const cut = disks.open("cut");
    expect(await tablesOf(cut, "noted")).toEqual(["notes", "notes_by_y"]);
    expect(await tablesOf(cut, "marked")).toEqual(["marks"]);
    expect(await tablesOf(cut, "plain")).toEqual([]);
    for (const database of [plain, noted, marked]) await database.close();
  });

  it("is restored from any segment", async () => {
    const files = disks.open("one", TINY);
    const open: InstanceDatabase[] = [];
    for (let i = 0; i < 6; i++) {
      const schema = [NOTES, MARKS, ""][i % 3];
      const database = await files.open(String(i), schema);
      open.push(database);
      disks.copy("one", `created-${i}`);
      await writeTo(database, (["notes", "marks", "_base_meta"] as const)[i % 3] ?? "marks");
      disks.copy("one", `written-${i}`);
      for (const disk of [`created-${i}`, `written-${i}`]) {
        const restarted = disks.open(disk);
        const last = disk.startsWith("written") ? i : i - 1;
        for (let known = 0; known <= last; known++)
          expect(await tablesOf(restarted, String(known))).toEqual(
            [["notes", "notes_by_y"], ["marks"], []][known % 3],
          );
        await restarted.close();
      }
    }
    for (const database of open) await database.close();
  });

  it("follows its template in the same segment, which contains each template once", async () => {
    const files = disks.open("one");
    const open: InstanceDatabase[] = [];
    for (let i = 0; i < 6; i++) open.push(await files.open(String(i), i % 2 === 0 ? NOTES : MARKS));
    const [segment = ""] = readdirSync(disks.journalOf("one"));
    const { records } = readRecords(readFileSync(join(disks.journalOf("one"), segment)), 1);
    const found = records.filter(({ kind }) => kind === RECORD_KINDS.template);
    expect(found.map(({ id }) => id)).toEqual(
      [templates.find(), templates.find(NOTES), templates.find(MARKS)].map(({ id }) => id.toString("hex")),
    );
    for (const [at, { kind, payload }] of records.entries()) {
      if (kind !== RECORD_KINDS.created) continue;
      const before = records.slice(0, at);
      expect(
        before.some((one) => one.kind === RECORD_KINDS.template && one.id === payload.toString("hex")),
      ).toBe(true);
    }
    for (const database of open) await database.close();
  });

  it("that was destroyed and created again has the tables of the last creation", async () => {
    const files = disks.open("one");
    const first = await files.open("x", NOTES);
    await writeTo(first, "notes");
    await first.close();
    await files.destroy("x");
    const second = await files.open("x", MARKS);
    await writeTo(second, "marks");
    disks.copy("one", "cut");
    removeDatabases("cut");
    expect(await tablesOf(disks.open("cut"), "x")).toEqual(["marks"]);
    await second.close();
  });

  it("waits for room on a full disk between its template and its record", async () => {
    const onStall = vi.fn();
    const files = disks.open("one", undefined, onStall);
    const other = await files.open("other");
    const { writeSync } = fs;
    let writes = 0;
    // Tests cannot fill the disk of the machine.
    fs.writeSync = ((...args: Parameters<typeof writeSync>) => {
      writes += 1;
      if (writes > 1)
        throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
      return writeSync(...args);
    }) as typeof writeSync;
    syncBuiltinESMExports();
    let database: InstanceDatabase;
    try {
      const opening = files.open("x", NOTES);
      await expect.poll(() => onStall.mock.calls.length).toBe(1);
      fs.writeSync = writeSync;
      syncBuiltinESMExports();
      database = await opening;
    } finally {
      fs.writeSync = writeSync;
      syncBuiltinESMExports();
    }
    await writeTo(database, "notes");
    disks.copy("one", "cut");
    removeDatabases("cut");
    expect(await tablesOf(disks.open("cut"), "x")).toEqual(["notes", "notes_by_y"]);
    for (const open of [other, database]) await open.close();
  });
});

describe("a journal", () => {
  const ID = Buffer.alloc(20, 7);

  function writeJournal(add: (records: RecordBuffer) => void, number = 1): void {
    const records = new RecordBuffer(64 * 1024);
    add(records);
    mkdirSync(disks.journalOf("made"), { recursive: true });
    writeFileSync(join(disks.journalOf("made"), "0000000001.log"), records.bytesFor(number));
  }

  it("without template ids uses the default template", async () => {
    const files = disks.open("one");
    const database = await files.open("x");
    await writeTo(database, "_base_meta");
    const [segment = ""] = readdirSync(disks.journalOf("one"));
    const { records } = readRecords(readFileSync(join(disks.journalOf("one"), segment)), 1);
    expect(
      records.map(({ kind, id, payload }) => [kind, id === NO_ID.toString("hex"), payload.length > 0]),
    ).toEqual([
      [RECORD_KINDS.template, true, true],
      [RECORD_KINDS.created, false, false],
      [RECORD_KINDS.frames, false, true],
    ]);
    disks.copy("one", "cut");
    removeDatabases("cut");
    expect(await tablesOf(disks.open("cut"), "x")).toEqual([]);
    await database.close();
  });

  it("without the template of an instance is refused", () => {
    writeJournal((records) => {
      records.add(RECORD_KINDS.template, NO_ID, 0, templates.find().bytes);
      records.add(RECORD_KINDS.created, ID, 0, Buffer.alloc(20, 0xaa));
    });
    expect(() => disks.open("made")).toThrow(/0000000001\.log is damaged: it lacks the template aaaaaaaa/);
  });

  it("with an instance before its template is refused", () => {
    writeJournal((records) => records.add(RECORD_KINDS.created, ID, 0, Buffer.alloc(0)));
    expect(() => disks.open("made")).toThrow("is damaged");
  });

  it("with checksums of another number has the records of a former segment, which do not count", async () => {
    writeJournal((records) => {
      records.add(RECORD_KINDS.template, NO_ID, 0, templates.find().bytes);
      records.add(9 as never, ID, 0, Buffer.alloc(0));
    }, 7);
    await disks.open("made").close();
  });

  it("with a record of an unknown kind is refused", () => {
    writeJournal((records) => records.add(9 as never, ID, 0, Buffer.alloc(0)));
    expect(() => disks.open("made")).toThrow("unknown kind 9");
  });
});
