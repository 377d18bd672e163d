/** Segments overwrite allocated bytes, which must never be read as records. */
import fs, { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readRows, useInstanceDisks, writeRow } from "../instance-disks-fixture.ts";
import type { InstanceDatabase, InstanceStore } from "../instance-store.ts";
import { readRecords } from "./journal-records.ts";

const NAME = "x";
const disks = useInstanceDisks();

const segmentsOf = (disk: string) =>
  readdirSync(disks.journalOf(disk))
    .filter((file) => file.endsWith(".log"))
    .toSorted()
    .map((file) => join(disks.journalOf(disk), file));
const newestOf = (disk: string) => segmentsOf(disk).at(-1) ?? "";

async function countOf(files: InstanceStore): Promise<number> {
  const database = await files.open(NAME);
  const count = readRows(database).length;
  await database.close();
  return count;
}

/** Writes until a segment reuses the file of a former one; returns the number of writes. */
async function writeUntilReused(name: string, database: InstanceDatabase): Promise<number> {
  const first = statSync(newestOf(name)).ino;
  for (let i = 1; i < 1000; i++) {
    await writeRow(database, i);
    const newest = newestOf(name);
    if (!newest.endsWith("0000000001.log") && statSync(newest).ino === first) return i;
  }
  throw new Error("the file of the first segment was not reused");
}

it("a segment overwrites a former one, and after a crash the remaining records of that one are ignored", async () => {
  const files = disks.open("one", 64 * 1024);
  const database = await files.open(NAME);
  const count = await writeUntilReused("one", database);
  disks.copy("one", "killed");
  expect(await countOf(disks.open("killed", 64 * 1024))).toBe(count);
  await database.close();
});

it("a segment whose file was renamed but not overwritten before a power failure is empty", async () => {
  const files = disks.open("one", 64 * 1024);
  const database = await files.open(NAME);
  for (let i = 0; i < 5; i++) await writeRow(database, i);
  disks.copy("one", "cut");
  copyFileSync(newestOf("cut"), join(disks.journalOf("cut"), "0000000002.log"));
  // A segment before the newest ends with its last record.
  const first = join(disks.journalOf("cut"), "0000000001.log");
  truncateSync(first, readRecords(readFileSync(first), 1).end);
  expect(await countOf(disks.open("cut", 64 * 1024))).toBe(5);
  await database.close();
});

it("the file of a segment grows in large steps, ahead of its records", async () => {
  const files = disks.open("one", 2 ** 30);
  const database = await files.open(NAME);
  const sizes = new Set<number>();
  for (let i = 0; i < 100; i++) {
    await writeRow(database, i);
    sizes.add(statSync(newestOf("one")).size);
  }
  expect(sizes.size).toBeLessThan(10);
  disks.copy("one", "killed");
  expect(await countOf(disks.open("killed", 2 ** 30))).toBe(100);
  await database.close();
});

it("a segment whose file cannot grow ahead, because the disk is full, accepts records while they fit", async () => {
  const files = disks.open("one", 2 ** 30);
  const database = await files.open(NAME);
  const { writeSync } = fs;
  // Tests cannot fill the disk of the machine.
  fs.writeSync = ((fd: number, bytes: Buffer, ...rest: [number, number, number]) => {
    if (bytes.every((byte) => byte === 0))
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    return writeSync(fd, bytes, ...rest);
  }) as typeof fs.writeSync;
  syncBuiltinESMExports();
  try {
    for (let i = 0; i < 60; i++) await writeRow(database, i);
  } finally {
    fs.writeSync = writeSync;
    syncBuiltinESMExports();
  }
  disks.copy("one", "killed");
  expect(await countOf(disks.open("killed", 2 ** 30))).toBe(60);
  await database.close();
});

it("a segment that grew far beyond its size is not reused", async () => {
  const files = disks.open("one", 1);
  const database = await files.open(NAME);
  for (let i = 0; i < 20; i++) await writeRow(database, i);
  await database.close();
  await expect.poll(() => segmentsOf("one")).toHaveLength(1);
  expect(readdirSync(disks.journalOf("one"))).not.toContain("spare");
});

it("an orderly stop leaves no spare segment", async () => {
  const files = disks.open("one", 64 * 1024);
  const database = await files.open(NAME);
  await writeUntilReused("one", database);
  await expect.poll(() => segmentsOf("one")).toHaveLength(1);
  await database.close();
  await files.close();
  expect(readdirSync(disks.journalOf("one"))).toEqual([]);
});

it("a spare segment of a killed process is removed", async () => {
  const files = disks.open("one", 64 * 1024);
  await writeRow(await files.open(NAME), 1);
  disks.copy("one", "killed");
  writeFileSync(join(disks.journalOf("killed"), "spare"), "anything");
  const next = disks.open("killed", 64 * 1024);
  expect(readdirSync(disks.journalOf("killed"))).not.toContain("spare");
  expect(await countOf(next)).toBe(1);
});
