/** A process with instances in PostgreSQL is killed again and again; its successor starts with its files, or on an empty machine. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BASE_SCHEMA, RESERVED_NAMES } from "../../packages/signalbox/src/agents/index.ts";
import { rawSql } from "../../packages/signalbox/src/core/sql.ts";
import { openSharedStore } from "../../packages/signalbox/src/engines/instance-store/index.ts";
import { STORAGE_AWAY, whenStorageIsBack } from "../support/storage-away.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";

const KILLS = 6;
const INSTANCES = 4;
/** Acknowledged numbers of a process before it is killed. */
const NUMBERS = 60;
const PROGRAM = join(import.meta.dirname, "../support/shared-store-writer.ts");

let postgres: TestPostgres;
let folder: string;
beforeAll(async () => {
  postgres = await openTestPostgres();
  folder = mkdtempSync(join(tmpdir(), "signalbox-shared-kill-"));
});
afterAll(async () => {
  await postgres.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** The last acknowledged number of each instance. */
const acknowledged = new Map<string, number>();

/** False if it ended by itself before, because PostgreSQL did not answer in time. */
async function runUntilKilled(disk: string, inc: number): Promise<boolean> {
  const args = [PROGRAM, postgres.url, join(folder, disk), String(inc), String(INSTANCES)];
  const child: ChildProcess = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exit = once(child, "exit");
  let count = 0;
  if (child.stdout === null) throw new Error("the process has no output");
  for await (const line of createInterface(child.stdout)) {
    const [instance = "", number] = line.split(" ");
    acknowledged.set(instance, Number(number));
    count += 1;
    // What it has printed already is read to the end.
    if (count === NUMBERS) child.kill("SIGKILL");
  }
  const [code, signal] = (await exit) as [number | null, string | null];
  if (code === STORAGE_AWAY) return false;
  expect([code, signal]).toEqual([null, "SIGKILL"]);
  return true;
}

it("every acknowledged number is there, once and in order", async () => {
  let inc = 0;
  for (let kill = 1; kill <= KILLS;) {
    inc += 1;
    if (await runUntilKilled(kill % 2 === 0 ? "kept" : `empty-${inc}`, inc)) kill += 1;
  }
  expect(acknowledged.size).toBe(INSTANCES);
  const self = String(inc + 1);
  const fail = (error: unknown) => {
    throw error;
  };
  const store = await openSharedStore({
    folder: join(folder, "after"),
    stores: [postgres.url],
    nodes: { self, isLeaseFresh: true, readLiving: () => Promise.resolve(new Set([self])) },
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    maxCacheBytes: 0,
    onFailure: fail,
    onStall: fail,
    onError: fail,
  });
  for (const [instance, number] of acknowledged) {
    const database = await whenStorageIsBack(() => store.open(`kill-${instance}`));
    expect(database.get(rawSql("PRAGMA integrity_check"))).toEqual({ integrity_check: "ok" });
    const numbers = database.all<{ n: number }>(rawSql("SELECT n FROM numbers ORDER BY n")).map(({ n }) => n);
    expect(numbers).toEqual(numbers.map((_, i) => i + 1));
    expect(numbers.length).toBeGreaterThanOrEqual(number);
    await database.close();
  }
  await store.close();
});
