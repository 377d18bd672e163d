/** A disk without room for a checkpoint: no commit is lost, and the store continues when the disk has room. */
import { readdirSync } from "node:fs";
import { afterEach, expect, it, vi } from "vitest";
import { readRows, useInstanceDisks, writeRow } from "../instance-disks-fixture.ts";
import { SqliteConnection } from "../../sqlite-file/connection.ts";

const NAME = "x";
const disks = useInstanceDisks();

afterEach(() => void vi.restoreAllMocks());

const stalled = () => undefined;

/** Tests cannot fill the disk of the machine: checkpoints fail until `makeRoom` is called. */
function fillDisk(): { readonly attempts: () => number; makeRoom(): void } {
  const { get } = SqliteConnection.prototype;
  let attempts = 0;
  const spy = vi.spyOn(SqliteConnection.prototype, "get").mockImplementation(function (
    this: SqliteConnection,
    query,
  ) {
    if (!query.parts.join("").includes("wal_checkpoint")) return get.call(this, query);
    attempts += 1;
    throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
  });
  return { attempts: () => attempts, makeRoom: () => spy.mockRestore() };
}

it("a database is closed only after its checkpoint, because its WAL is reused", async () => {
  const files = disks.open("one", undefined, stalled);
  const database = await files.open(NAME);
  for (let i = 0; i < 10; i++) await writeRow(database, i);
  const disk = fillDisk();
  let isClosed = false;
  const closed = database.close().then(() => (isClosed = true));
  await expect.poll(() => disk.attempts()).toBeGreaterThan(1);
  expect(isClosed).toBe(false);
  disk.makeRoom();
  await closed;
  await expect.poll(() => files.problem).toBeNull();
  const again = await files.open(NAME);
  expect(readRows(again)).toHaveLength(10);
  await again.close();
});

it("a segment whose instances cannot be checkpointed is kept until the disk has room, and the process continues", async () => {
  const files = disks.open("one", 1, stalled);
  const database = await files.open(NAME);
  const disk = fillDisk();
  for (let i = 0; i < 10; i++) await writeRow(database, i);
  await expect.poll(() => disk.attempts()).toBeGreaterThan(1);
  expect(readdirSync(disks.journalOf("one"))).toContain("0000000001.log");
  disk.makeRoom();
  await expect.poll(() => readdirSync(disks.journalOf("one"))).not.toContain("0000000001.log");
  expect(readRows(database)).toHaveLength(10);
  await database.close();
});
