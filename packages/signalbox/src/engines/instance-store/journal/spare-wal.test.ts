import fs, { copyFileSync, existsSync, globSync, mkdirSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readRows, useInstanceDisks, writeRow } from "../instance-disks.ts";

const disks = useInstanceDisks();
const logsOf = (disk: string) => globSync(`${disk}/agents/??/*-wal`, { cwd: disks.folder });

/** A disk with instances whose files say 1, 2 and whose logs, left by a process that was killed, would take the 2 back. */
async function leaveStaleLogs(names: readonly string[]): Promise<void> {
  const files = disks.open("disk");
  for (const name of names) {
    const database = await files.open(name);
    await writeRow(database, 1);
    const [log = ""] = logsOf("disk");
    const path = join(disks.folder, log);
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
  expect(logsOf("disk")).toHaveLength(names.length);
}

/** Listing folders takes until the returned function is called. */
function holdListings(): () => void {
  const { readdir } = fs.promises;
  const gate = Promise.withResolvers<void>();
  fs.promises.readdir = (async (...args: Parameters<typeof readdir>) => {
    await gate.promise;
    return readdir(...args);
  }) as typeof readdir;
  syncBuiltinESMExports();
  onTestFinished(() => {
    gate.resolve();
    fs.promises.readdir = readdir;
    syncBuiltinESMExports();
  });
  return gate.resolve;
}

describe("logs of a process that was killed", () => {
  it("are not used, and gone after a while", async () => {
    await leaveStaleLogs(["x", "y", "z"]);
    const files = disks.open("disk");
    const database = await files.open("x");
    expect(readRows(database)).toEqual([1, 2]);
    await expect.poll(() => logsOf("disk")).toHaveLength(1);
    await writeRow(database, 3);
    expect(readRows(database)).toEqual([1, 2, 3]);
    await database.close();
    await files.close();
    expect(existsSync(join(disks.folder, "disk/agents/spare-wal"))).toBe(false);
  });

  it("hold up no start, and a log that is in use by then is not taken away", async () => {
    await leaveStaleLogs(["x", "y"]);
    const release = holdListings();
    const files = disks.open("disk");
    const database = await files.open("x");
    expect(readRows(database)).toEqual([1, 2]);
    await writeRow(database, 3);
    expect(logsOf("disk")).toHaveLength(2);
    release();
    await expect.poll(() => logsOf("disk")).toHaveLength(1);
    await writeRow(database, 4);
    await database.close();
    const again = await files.open("x");
    expect(readRows(again)).toEqual([1, 2, 3, 4]);
    await again.close();
  });

  it("are remembered by a stop that comes before they are gone", async () => {
    await leaveStaleLogs(["x", "y"]);
    const release = holdListings();
    const files = disks.open("disk");
    const closed = files.close();
    release();
    await closed;
    expect(logsOf("disk").length).toBeGreaterThan(0);
    const next = disks.open("disk");
    for (const name of ["x", "y"]) {
      const database = await next.open(name);
      expect(readRows(database)).toEqual([1, 2]);
      await database.close();
    }
    await expect.poll(() => logsOf("disk")).toEqual([]);
  });
});
