/** Segments are written over bytes that are there already, and nobody may ever take those for records. */
import fs, {
  copyFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { InstanceDatabase } from "../../../ports/instance-store.ts";
import { rawSql, sql } from "../../../ports/sql.ts";
import { InstanceFiles } from "../instance-files.ts";
import { readRecords } from "./record.ts";

const REF = { agent: "a", name: "x" };

let folder: string;
let opened: InstanceFiles[];
beforeEach(() => {
  opened = [];
  folder = mkdtempSync(join(tmpdir(), "signalbox-segment-"));
});
afterEach(async () => {
  for (const files of opened) await files.close();
  rmSync(folder, { recursive: true, force: true });
});

const fail = (error: Error): never => {
  throw error;
};

function openFiles(name: string, segmentBytes: number): InstanceFiles {
  const files = new InstanceFiles(join(folder, name, "agents"), {
    segmentBytes,
    onFailure: fail,
    onStall: fail,
  });
  opened.push(files);
  return files;
}

const journalOf = (name: string) => join(folder, name, "agents/journal");
const segmentsOf = (name: string) =>
  readdirSync(journalOf(name))
    .filter((file) => file.endsWith(".log"))
    .toSorted()
    .map((file) => join(journalOf(name), file));
const newestOf = (name: string) => segmentsOf(name).at(-1) ?? "";
const copy = (from: string, to: string) => cpSync(join(folder, from), join(folder, to), { recursive: true });

async function write(database: InstanceDatabase, value: number): Promise<void> {
  database.begin();
  database.run(rawSql("CREATE TABLE IF NOT EXISTS t (x INTEGER)"));
  database.run(sql`INSERT INTO t VALUES (${value})`);
  database.commit();
  await database.sync();
}

async function countOf(files: InstanceFiles): Promise<number> {
  const database = await files.open(REF);
  const count = database.get<{ n: number }>(rawSql("SELECT count(*) AS n FROM t"))?.n ?? 0;
  await database.close();
  return count;
}

/** Writes until a segment has the file of a former one; returns the number of writes. */
async function writeUntilReused(name: string, database: InstanceDatabase): Promise<number> {
  const first = statSync(newestOf(name)).ino;
  for (let i = 1; i < 1000; i++) {
    await write(database, i);
    const newest = newestOf(name);
    if (!newest.endsWith("0000000001.log") && statSync(newest).ino === first) return i;
  }
  throw new Error("the first segment's file was never used again");
}

it("a segment is written over a settled one, and after a crash what is left of that is not taken for its own", async () => {
  const files = openFiles("one", 64 * 1024);
  const database = await files.open(REF);
  const count = await writeUntilReused("one", database);
  copy("one", "killed");
  // Nothing of what was written since the first segment may be needed from the instance's own file.
  expect(await countOf(openFiles("killed", 64 * 1024))).toBe(count);
  await database.close();
});

it("a segment that was about to be written over a former one when the power went is empty", async () => {
  const files = openFiles("one", 64 * 1024);
  const database = await files.open(REF);
  for (let i = 0; i < 5; i++) await write(database, i);
  copy("one", "cut");
  copyFileSync(newestOf("cut"), join(journalOf("cut"), "0000000002.log"));
  // A segment before the newest ends with its last record.
  const first = join(journalOf("cut"), "0000000001.log");
  truncateSync(first, readRecords(readFileSync(first), 1).end);
  expect(await countOf(openFiles("cut", 64 * 1024))).toBe(5);
  await database.close();
});

it("a segment's file has its size before the records come, and grows in large steps", async () => {
  const files = openFiles("one", 2 ** 30);
  const database = await files.open(REF);
  const sizes = new Set<number>();
  for (let i = 0; i < 100; i++) {
    await write(database, i);
    sizes.add(statSync(newestOf("one")).size);
  }
  expect(sizes.size).toBeLessThan(10);
  copy("one", "killed");
  expect(await countOf(openFiles("killed", 2 ** 30))).toBe(100);
  await database.close();
});

it("a segment whose file cannot be laid out, because the disk is full, takes records while they fit", async () => {
  const files = openFiles("one", 2 ** 30);
  const database = await files.open(REF);
  const { writeSync } = fs;
  // No test can fill a disk of the machine it runs on.
  fs.writeSync = ((fd: number, bytes: Buffer, ...rest: [number, number, number]) => {
    if (bytes.every((byte) => byte === 0))
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    return writeSync(fd, bytes, ...rest);
  }) as typeof fs.writeSync;
  syncBuiltinESMExports();
  try {
    for (let i = 0; i < 60; i++) await write(database, i);
  } finally {
    fs.writeSync = writeSync;
    syncBuiltinESMExports();
  }
  copy("one", "killed");
  expect(await countOf(openFiles("killed", 2 ** 30))).toBe(60);
  await database.close();
});

it("a file that had to grow far beyond its size is not kept", async () => {
  const files = openFiles("one", 1);
  const database = await files.open(REF);
  for (let i = 0; i < 20; i++) await write(database, i);
  await database.close();
  await vi.waitFor(() => expect(segmentsOf("one")).toHaveLength(1));
  expect(readdirSync(journalOf("one"))).not.toContain("spare");
});

it("an orderly stop leaves no file behind to be written over", async () => {
  const files = openFiles("one", 64 * 1024);
  const database = await files.open(REF);
  await writeUntilReused("one", database);
  await vi.waitFor(() => expect(segmentsOf("one")).toHaveLength(1));
  await database.close();
  await files.close();
  expect(readdirSync(journalOf("one"))).toEqual([]);
});

it("a file that a killed process left to be written over is removed", async () => {
  const files = openFiles("one", 64 * 1024);
  await write(await files.open(REF), 1);
  copy("one", "killed");
  writeFileSync(join(journalOf("killed"), "spare"), "anything");
  const next = openFiles("killed", 64 * 1024);
  expect(readdirSync(journalOf("killed"))).not.toContain("spare");
  expect(await countOf(next)).toBe(1);
});
