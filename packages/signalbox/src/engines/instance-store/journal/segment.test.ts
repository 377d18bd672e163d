/** Segments are written over bytes that are there already, and nobody may ever take those for records. */
import fs, { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { readRows, useInstanceDisks, writeRow } from "../instance-disks.ts";
import type { InstanceDatabase, InstanceStore } from "../instance-store.ts";
import { readRecords } from "./record.ts";

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

/** Writes until a segment has the file of a former one; returns the number of writes. */
async function writeUntilReused(name: string, database: InstanceDatabase): Promise<number> {
  const first = statSync(newestOf(name)).ino;
  for (let i = 1; i < 1000; i++) {
    await writeRow(database, i);
    const newest = newestOf(name);
    if (!newest.endsWith("0000000001.log") && statSync(newest).ino === first) return i;
  }
  throw new Error("the first segment's file was never used again");
}

it("a segment is written over a settled one, and after a crash what is left of that is not taken for its own", async () => {
  const files = disks.open("one", 64 * 1024);
  const database = await files.open(NAME);
  const count = await writeUntilReused("one", database);
  disks.copy("one", "killed");
  // Nothing of what was written since the first segment may be needed from the instance's own file.
  expect(await countOf(disks.open("killed", 64 * 1024))).toBe(count);
  await database.close();
});

it("a segment that was about to be written over a former one when the power went is empty", async () => {
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

it("a segment's file has its size before the records come, and grows in large steps", async () => {
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

it("a segment whose file cannot be laid out, because the disk is full, takes records while they fit", async () => {
  const files = disks.open("one", 2 ** 30);
  const database = await files.open(NAME);
  const { writeSync } = fs;
  // No test can fill a disk of the machine it runs on.
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

it("a file that had to grow far beyond its size is not kept", async () => {
  const files = disks.open("one", 1);
  const database = await files.open(NAME);
  for (let i = 0; i < 20; i++) await writeRow(database, i);
  await database.close();
  await vi.waitFor(() => expect(segmentsOf("one")).toHaveLength(1));
  expect(readdirSync(disks.journalOf("one"))).not.toContain("spare");
});

it("an orderly stop leaves no file behind to be written over", async () => {
  const files = disks.open("one", 64 * 1024);
  const database = await files.open(NAME);
  await writeUntilReused("one", database);
  await vi.waitFor(() => expect(segmentsOf("one")).toHaveLength(1));
  await database.close();
  await files.close();
  expect(readdirSync(disks.journalOf("one"))).toEqual([]);
});

it("a file that a killed process left to be written over is removed", async () => {
  const files = disks.open("one", 64 * 1024);
  await writeRow(await files.open(NAME), 1);
  disks.copy("one", "killed");
  writeFileSync(join(disks.journalOf("killed"), "spare"), "anything");
  const next = disks.open("killed", 64 * 1024);
  expect(readdirSync(disks.journalOf("killed"))).not.toContain("spare");
  expect(await countOf(next)).toBe(1);
});
