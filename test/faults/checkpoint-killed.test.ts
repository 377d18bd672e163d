/** A process is killed again and again around the moments at which a thread copies the WAL into the database. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { rawSql } from "../../packages/signalbox/src/core/sql.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";

const PROGRAM = join(import.meta.dirname, "../support/database-writer.ts");
/** Rows of 30 pages: the first copy begins after about 270, and transactions wait for the end of one after about 820. */
const ROWS_BEFORE_KILL = [275, 285, 310, 825, 835, 860];

async function runUntilKilled(path: string, first: number, rows: number): Promise<number[]> {
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, path, String(first)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  const acknowledged: number[] = [];
  if (child.stdout === null) throw new Error("the process has no output");
  for await (const line of createInterface(child.stdout)) {
    acknowledged.push(Number(line));
    // What it has printed already is read to the end.
    if (acknowledged.length === rows) child.kill("SIGKILL");
  }
  expect(await exit).toEqual([null, "SIGKILL"]);
  return acknowledged;
}

it("every acknowledged row is there, and the database is whole", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-checkpoint-kill-"));
  const path = join(folder, "test.db");
  const acknowledged: number[] = [];
  for (const rows of ROWS_BEFORE_KILL) {
    const first = Math.max(0, ...acknowledged) + 100;
    acknowledged.push(...(await runUntilKilled(path, first, rows)));
  }
  const database = await SqliteDatabase.open(path, (error) => {
    throw error;
  });
  const stored = await database.all<{ n: number }>(rawSql("SELECT n FROM row"));
  const numbers = new Set(stored.map(({ n }) => n));
  expect(acknowledged.filter((n) => !numbers.has(n))).toEqual([]);
  expect(await database.all(rawSql("PRAGMA integrity_check"))).toEqual([{ integrity_check: "ok" }]);
  await database.close();
  await rm(folder, { recursive: true });
});
