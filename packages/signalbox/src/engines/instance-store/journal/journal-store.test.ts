/** What the journal engine does beside the contract of every engine. */
import fs, { readFileSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { readRows, rowsOf, useInstanceDisks, writeRow } from "../instance-disks-fixture.ts";

const NAME = "x";
const disks = useInstanceDisks();
const pathOf = (disk: string) => join(disks.folder, disks.filesOf(disk, "*.db")[0] ?? "");

it("ignores a WAL that a killed process left", async () => {
  const store = disks.open("one");
  const database = await store.open(NAME);
  await writeRow(database, 1);
  await database.close();
  writeFileSync(`${pathOf("one")}-wal`, "left over");
  disks.copy("one", "killed");
  expect(await rowsOf(disks.open("killed"), NAME)).toEqual([1]);
});

it("refuses a database that another program has open and has written to", async () => {
  const store = disks.open("one");
  await (await store.open(NAME)).close();
  const wal = `${pathOf("one")}-wal`;
  writeFileSync(wal, "of another program");
  await expect(store.open(NAME)).rejects.toThrow("another program");
  expect(readFileSync(wal, "utf8")).toBe("of another program");
  fs.rmSync(wal);
});

it("removes a file whose template could not be written to a full disk, and creates the file at the next open", async () => {
  const onStall = vi.fn();
  const store = disks.open("one", undefined, onStall);
  const { writeSync } = fs;
  // Tests cannot fill the disk of the machine.
  fs.writeSync = ((...args: Parameters<typeof writeSync>) => {
    if (Buffer.from(args[1] as unknown as Uint8Array).toString("latin1", 0, 15) === "SQLite format 3")
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    return writeSync(...args);
  }) as typeof writeSync;
  syncBuiltinESMExports();
  try {
    await expect(store.open(NAME)).rejects.toThrow("the disk is full");
    await expect(store.open(NAME)).rejects.toThrow("the disk is full");
    expect(onStall).toHaveBeenCalledTimes(1);
  } finally {
    fs.writeSync = writeSync;
    syncBuiltinESMExports();
  }
  expect(disks.filesOf("one", "*.db")).toEqual([]);
  await expect.poll(() => store.problem).toBeNull();
  const database = await store.open(NAME);
  expect([database.isNew, readRows(database)]).toEqual([true, []]);
  await database.close();
});
