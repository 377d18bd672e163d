/**
 * The control plane's database on SQLite: one writing and one reading connection on the same file.
 *
 * Invariants (beside those of the port):
 * 1. The writing connection is used only inside the write queue, so transactions never interleave.
 * 2. The queue moves on after COMMIT, not after the sync: transactions that commit meanwhile share the next sync.
 * 3. Reads use their own connection; in WAL mode they see the last commit and never wait for a writer.
 * 4. A lock of another program is waited for between attempts, never inside SQLite: there it would hold up the event loop, and with it
 *    every request.
 */
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { repeat, type Repetition } from "../../core/repeat.ts";
import type { Database, Queryable } from "../database.ts";
import { rawSql, type SqlQuery } from "../../core/sql.ts";
import {
  explainFailure,
  isBusy,
  isFullDisk,
  SqliteConnection,
  syncFolder,
  WalSync,
} from "../../engines/sqlite-file/index.ts";

const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

/** Page cache of each connection, used up only as far as the database is large; the default of 2 MiB misses on every other page. */
const CACHE_KIB = 64 * 1024;
/** Pages in the log before they are copied back, 32 MiB: a page that is changed often is then copied once instead of each time. */
const CHECKPOINT_PAGES = 8192;

/** How long reads and writes wait for a lock of another program: a backup tool's moment passes unseen, and senders still get an answer. */
const MAX_WAIT_MS = 5000;
/** Between two attempts to get the lock; it doubles up to the longest. */
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;
/** How often a database that could not write is looked at again. */
const PROBE_MS = 1000;
/** Writes one page without changing anything. */
const PROBE = rawSql("PRAGMA user_version = 1");

export class SqliteDatabase implements Database {
  readonly engine = "sqlite";
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #walSync: WalSync;
  readonly #transaction: Queryable;
  readonly #maxWaitMs: number;
  #queue: Promise<unknown> = Promise.resolve();
  #problem: string | null = null;
  #probing: Repetition | null = null;

  private constructor(
    writer: SqliteConnection,
    reader: SqliteConnection,
    walSync: WalSync,
    maxWaitMs: number,
  ) {
    this.#maxWaitMs = maxWaitMs;
    this.#writer = writer;
    this.#reader = reader;
    this.#walSync = walSync;
    this.#transaction = asQueryable(writer);
  }

  /** `onSyncFailure` must end the process: after it no commit of this database can be trusted. Tests have less time to wait for a lock. */
  static async open(
    path: string,
    onSyncFailure: (error: Error) => void,
    maxWaitMs: number = MAX_WAIT_MS,
  ): Promise<SqliteDatabase> {
    const writer = SqliteConnection.open(path);
    writer.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;");
    writer.exec(`PRAGMA cache_size = -${CACHE_KIB}; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};`);
    // An empty write transaction makes SQLite create the -wal file, which must exist before the first real commit.
    writer.exec("BEGIN IMMEDIATE; PRAGMA user_version = 1; COMMIT;");
    syncFolder(dirname(path));
    const walSync = await WalSync.open(path, onSyncFailure);
    // A process that was killed may have left commits unsynced, and reads wait for no sync.
    await walSync.sync();
    const reader = SqliteConnection.open(path, { readOnly: true });
    reader.exec(`PRAGMA cache_size = -${CACHE_KIB};`);
    // Up to here nothing is served and SQLite may wait by itself.
    writer.setBusyTimeout(0);
    reader.setBusyTimeout(0);
    return new SqliteDatabase(writer, reader, walSync, maxWaitMs);
  }

  get problem(): string | null {
    return this.#problem;
  }

  async all<Row>(query: SqlQuery): Promise<Row[]> {
    return this.#read(() => this.#reader.all<Row>(query));
  }

  async get<Row>(query: SqlQuery): Promise<Row | undefined> {
    return this.#read(() => this.#reader.get<Row>(query));
  }

  run(query: SqlQuery): Promise<{ changes: number }> {
    return this.transaction((tx) => tx.run(query));
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#maxWaitMs;
    const committed = this.#queue.then(() => this.#runTransaction(work, deadline));
    // The queue only keeps the order; the caller hears of the failure.
    this.#queue = committed.catch(() => undefined);
    const result = await committed;
    await this.#walSync.sync();
    return result;
  }

  async close(): Promise<void> {
    await this.#probing?.stop();
    await this.#queue;
    await this.#walSync.close();
    this.#reader.close();
    this.#writer.close();
  }

  async #runTransaction<T>(work: (tx: Queryable) => Promise<T>, deadline: number): Promise<T> {
    try {
      if (!this.#tryBegin()) await retryWhileBusy(() => this.#writer.run(BEGIN), deadline);
      const result = await work(this.#transaction);
      this.#writer.run(COMMIT);
      if (this.#problem !== null) this.#recover();
      return result;
    } catch (error) {
      rollBack(this.#writer);
      this.#note(error);
      throw explainFailure(error);
    }
  }

  #tryBegin(): boolean {
    try {
      this.#writer.run(BEGIN);
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw error;
    }
  }

  #read<T>(read: () => T): T | Promise<T> {
    try {
      return read();
    } catch (error) {
      if (!isBusy(error)) throw explainFailure(error);
      return retryWhileBusy(read, performance.now() + this.#maxWaitMs).catch((last: unknown) => {
        throw explainFailure(last);
      });
    }
  }

  #note(error: unknown): void {
    if (isFullDisk(error)) this.#problem = "the disk is full";
    else if (isBusy(error)) this.#problem = "another program holds a lock on the database";
    else return;
    // Writes of clients may stay away meanwhile, so it is found out that they would succeed again. A probe that fails is noted as any write.
    this.#probing ??= repeat(
      PROBE_MS,
      async () => void (await this.run(PROBE)),
      () => undefined,
    );
  }

  #recover(): void {
    this.#problem = null;
    // Not waited for: the probe itself may be what got here.
    void this.#probing?.stop();
    this.#probing = null;
  }
}

/** Throws what the last attempt has thrown when the time is up, and at once what is not about a lock. */
async function retryWhileBusy<T>(attempt: () => T, deadline: number): Promise<T> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    await sleep(pause);
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error;
    }
  }
}

/** The failure that led here is the one to tell; a rollback that fails too leaves a transaction that the next BEGIN reports. */
function rollBack(connection: SqliteConnection): void {
  try {
    connection.rollback();
  } catch {
    // See above.
  }
}

function asQueryable(connection: SqliteConnection): Queryable {
  return {
    all: async <Row>(query: SqlQuery) => connection.all<Row>(query),
    get: async <Row>(query: SqlQuery) => connection.get<Row>(query),
    run: async (query: SqlQuery) => connection.run(query),
  };
}
