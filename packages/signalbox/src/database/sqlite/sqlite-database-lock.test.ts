/** Another program holds the write lock of the database while this process is paused. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { rawSql } from "../../core/sql.ts";
import { SqliteConnection } from "../../engines/sqlite-file/connection.ts";
import { SqliteDatabase } from "./sqlite-database.ts";

/** As a pause of the process: all timers are late. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

it("a pause of the process is not time that the other program had", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-sqlite-"));
  const path = join(folder, "test.db");
  const fail = (error: Error) => {
    throw error;
  };
  const database = await SqliteDatabase.open(path, fail, 60_000);
  const intruder = SqliteConnection.open(path);
  onTestFinished(async () => {
    intruder.close();
    await database.close();
    await rm(folder, { recursive: true });
  });
  await database.run(rawSql("CREATE TABLE t (n INTEGER)"));
  const impatient = await SqliteDatabase.open(path, fail, 1000);
  onTestFinished(() => impatient.close());
  intruder.exec("BEGIN IMMEDIATE");
  const write = impatient.run(rawSql("INSERT INTO t VALUES (1)"));
  await sleep(1);
  pause(1500);
  // The next attempts find the lock.
  await sleep(200);
  intruder.exec("ROLLBACK");
  expect(await write).toMatchObject({ changes: 1 });
});
