/** The WAL is copied by a thread, while a connection writes to it and others read. */
import { mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { Serial } from "../../core/serial.ts";
import { rawSql } from "../../core/sql.ts";
import { SqliteConnection } from "../../engines/sqlite-file/index.ts";
import type { WalPages } from "./checkpoint.worker.ts";
import { CheckpointThread } from "./checkpoint-thread.ts";
import { Checkpoints, AUTOCHECKPOINT_PAGES } from "./checkpoints.ts";
import { SqliteDatabase } from "./sqlite-database.ts";

const LIMITS = { copyPages: 64, holdPages: 192 };
const INSERT = rawSql("INSERT INTO t (bytes) VALUES (randomblob(30000))");
const COUNT = rawSql("SELECT COUNT(*) AS n FROM t");
const PAGES = rawSql("PRAGMA wal_checkpoint(NOOP)");

let folder: string;
let path: string;
let writer: SqliteConnection;
let transactions: Serial;
let checkpoints: Checkpoints;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-checkpoints-"));
  path = join(folder, "test.db");
  writer = SqliteConnection.open(path);
  // SQLite copies nothing itself.
  writer.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;");
  writer.exec("CREATE TABLE t (n INTEGER PRIMARY KEY, bytes BLOB)");
  transactions = new Serial();
  checkpoints = new Checkpoints(path, writer, (work) => transactions.run(work), LIMITS);
});
afterEach(async () => {
  await checkpoints.close();
  writer.close();
  await rm(folder, { recursive: true });
});

let written = 0;
beforeEach(() => {
  written = 0;
});

/** Commits eight pages, as a transaction of the database does. */
async function write(): Promise<void> {
  await transactions.run(() => {
    writer.run(INSERT);
    written += 1;
    checkpoints.committed();
  });
  await nextTurn();
}

function pagesOf(connection: SqliteConnection): WalPages {
  return connection.get<WalPages>(PAGES) ?? { log: -1, checkpointed: -1 };
}

/** Writes until the condition holds; the test fails if it never does. */
async function writeUntil(condition: (pages: WalPages) => boolean): Promise<void> {
  while (!condition(pagesOf(writer))) await write();
}

/** Writes until SQLite has started the WAL over. */
async function writeUntilStartedOver(): Promise<void> {
  let last = 0;
  await writeUntil(({ log }) => {
    const isSmaller = log < last;
    last = log;
    return isSmaller;
  });
}

it("SQLite starts the WAL over again and again, although something is always added to it", async () => {
  for (let time = 0; time < 5; time++) await writeUntilStartedOver();
  expect(writer.get(COUNT)).toEqual({ n: written });
});

it("every commit is seen by the next read, also while the WAL is copied and started over", async () => {
  const reader = SqliteConnection.open(path, { readOnly: true });
  for (let i = 0; i < 1000; i++) {
    await write();
    expect(reader.get(COUNT)).toEqual({ n: written });
  }
  reader.close();
});

it("a long read keeps its state, and writes do not wait for its end", async () => {
  const reader = SqliteConnection.open(path, { readOnly: true });
  await write();
  reader.exec("BEGIN");
  expect(reader.get(COUNT)).toEqual({ n: 1 });
  await writeUntil(({ log }) => log > 4 * LIMITS.holdPages);
  expect(reader.get(COUNT)).toEqual({ n: 1 });
  reader.exec("COMMIT");
  reader.close();
  await writeUntilStartedOver();
});

it("writes go on while no thread can copy, and the WAL is copied when one can again", async () => {
  // The connections that are open do not need the name of the folder, a new one does.
  const away = `${folder}-away`;
  await rename(folder, away);
  await writeUntil(({ log }) => log > 4 * LIMITS.holdPages);
  expect(pagesOf(writer)).toMatchObject({ checkpointed: 0 });
  await rename(away, folder);
  await writeUntilStartedOver();
  expect(writer.get(COUNT)).toEqual({ n: written });
});

it("a copy fails if its thread ends, and the next one starts another thread", async () => {
  const thread = new CheckpointThread(path);
  await write();
  const log = pagesOf(writer).log;
  expect(await thread.copy()).toEqual({ log, checkpointed: log });
  const ended = thread.copy().catch((error: unknown) => error);
  await thread.close();
  // It may have been quicker than its end.
  expect([{ log, checkpointed: log }, new Error("the thread that copies the WAL has ended")]).toContainEqual(
    await ended,
  );
  expect(await thread.copy()).toEqual({ log, checkpointed: log });
  await thread.close();
});

it("a thread that was not asked for half a minute ends, and the next copy starts another", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const ending = vi.spyOn(Worker.prototype, "terminate");
  onTestFinished(() => ending.mockRestore());
  const thread = new CheckpointThread(path);
  await write();
  await thread.copy();
  vi.advanceTimersByTime(20_000);
  await thread.copy();
  vi.advanceTimersByTime(20_000);
  expect(ending).not.toHaveBeenCalled();
  vi.advanceTimersByTime(10_000);
  expect(ending).toHaveBeenCalledOnce();
  const { log } = pagesOf(writer);
  // Before the first one has ended.
  expect(await thread.copy()).toEqual({ log, checkpointed: log });
  await ending.mock.results[0]?.value;
  expect(await thread.copy()).toEqual({ log, checkpointed: log });
  await thread.close();
  expect(ending).toHaveBeenCalledTimes(2);
});

it("while no thread can copy, SQLite keeps the WAL of the database within its bound", async () => {
  const home = join(folder, "home");
  await mkdir(home);
  const database = await SqliteDatabase.open(join(home, "test.db"), (error) => {
    throw error;
  });
  await database.run(rawSql("CREATE TABLE t (bytes BLOB)"));
  const away = join(folder, "away");
  await rename(home, away);
  const commit = () => database.run(rawSql("INSERT INTO t VALUES (randomblob(4000000))"));
  const pages = async () => (await stat(join(away, "test.db-wal"))).size / (4096 + 24);
  while ((await pages()) < AUTOCHECKPOINT_PAGES) await commit();
  const size = await pages();
  for (let i = 0; i < 10; i++) await commit();
  expect(await pages()).toBe(size);
  await rename(away, home);
  await database.close();
});
