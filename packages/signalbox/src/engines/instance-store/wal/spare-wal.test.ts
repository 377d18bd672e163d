import fs, { copyFileSync, existsSync, globSync, mkdirSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readRows, useInstanceDisks, writeRow } from "../instance-disks-fixture.ts";

const disks = useInstanceDisks();
const walsOf = (disk: string) => globSync(`${disk}/agents/??/*-wal`, { cwd: disks.folder });

/** A disk with databases that have the rows 1 and 2, and WAL files of a killed process that would undo row 2. */
async function leaveStaleWals(names: readonly string[]): Promise<void> {
  const files = disks.open("disk");
  for (const name of names) {
    const database = await files.open(name);
    await writeRow(database, 1);
    const [wal = ""] = walsOf("disk");
    const path = join(disks.folder, wal);
    copyFileSync(path, `${path}-stale`);
    await writeRow(database, 2);
    await database.close();
  }
  await files.close();
  for (const stale of globSync("disk/agents/??/*-wal-stale", { cwd: disks.folder })) {
    const path = join(disks.folder, stale);
    copyFileSync(path, path.replace(/-stale$/, ""));
    fs.rmSync(path);
  }
  mkdirSync(join(disks.folder, "disk/agents/spare-wal"));
  expect(walsOf("disk")).toHaveLength(names.length);
}

/** Delays the listing of folders until `release` is called, and counts the listings. */
function holdListings(): { release: () => void; readonly count: number } {
  const { readdir } = fs.promises;
  const gate = Promise.withResolvers<void>();
  const listings = { release: gate.resolve, count: 0 };
  fs.promises.readdir = (async (...args: Parameters<typeof readdir>) => {
    await gate.promise;
    const names = await readdir(...args);
    listings.count += 1;
    return names;
  }) as typeof readdir;
  syncBuiltinESMExports();
  onTestFinished(() => {
    gate.resolve();
    fs.promises.readdir = readdir;
    syncBuiltinESMExports();
  });
  return listings;
}

describe("WAL files of a killed process", () => {
  it("are removed in the background, and their folder with them when the store closes", async () => {
    await leaveStaleWals(["x", "y", "z"]);
    const listings = holdListings();
    listings.release();
    const files = disks.open("disk");
    const folders = globSync("disk/agents/??", { cwd: disks.folder }).length;
    await expect.poll(() => listings.count).toBe(folders);
    expect(walsOf("disk")).toEqual([]);
    const database = await files.open("x");
    expect(readRows(database)).toEqual([1, 2]);
    await writeRow(database, 3);
    expect(readRows(database)).toEqual([1, 2, 3]);
    await database.close();
    await files.close();
    expect(existsSync(join(disks.folder, "disk/agents/spare-wal"))).toBe(false);
  });

  it("do not delay the start and are not read, and a WAL that is in use by then is not removed", async () => {
    await leaveStaleWals(["x", "y"]);
    const { release } = holdListings();
    const files = disks.open("disk");
    const database = await files.open("x");
    expect(readRows(database)).toEqual([1, 2]);
    await writeRow(database, 3);
    expect(walsOf("disk")).toHaveLength(2);
    release();
    await expect.poll(() => walsOf("disk")).toHaveLength(1);
    await writeRow(database, 4);
    await database.close();
    const again = await files.open("x");
    expect(readRows(again)).toEqual([1, 2, 3, 4]);
    await again.close();
  });

  it("are removed by the next start if the process stops before they are removed", async () => {
    await leaveStaleWals(["x", "y"]);
    const { release } = holdListings();
    const files = disks.open("disk");
    const closed = files.close();
    release();
    await closed;
    expect(walsOf("disk").length).toBeGreaterThan(0);
    const next = disks.open("disk");
    for (const name of ["x", "y"]) {
      const database = await next.open(name);
      expect(readRows(database)).toEqual([1, 2]);
      await database.close();
    }
    await expect.poll(() => walsOf("disk")).toEqual([]);
  });
});
