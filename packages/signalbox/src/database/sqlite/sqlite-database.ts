/**
 * The control plane's database on SQLite: one connection for writes, one for reads, and threads for reads of many rows.
 *
 * Invariants (in addition to those of `Database`):
 * 1. The write connection is used only by the write queue, so transactions never interleave.
 * 2. The queue continues after COMMIT without waiting for the sync: transactions that commit during a sync share the next one.
 * 3. Reads use their own connection; in WAL mode they see the last commit and never wait for a writer.
 * 4. A statement that may visit many rows runs in a thread (`scan`): all others block the event loop while they run.
 * 5. The WAL is copied into the database in a thread, too (`Checkpoints`).
 * 6. If another program holds a lock, attempts are repeated with pauses. SQLite itself must not wait: it would block the event loop.
 */
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncFolder } from "../../engines/durable-file/index.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import type { Database, Queryable, ScanTurn } from "../database.ts";
import { ScanTurns } from "../scan-turns.ts";
import { Serial } from "../../core/serial.ts";
import { rawSql, type SqlQuery } from "../../core/sql.ts";
import {
  explainFailure,
  isBusy,
  isFullDisk,
  keepPrivate,
  SqliteConnection,
  WalSync,
} from "../../engines/sqlite-file/index.ts";
import { Checkpoints, AUTOCHECKPOINT_PAGES } from "./checkpoints.ts";
import { ReaderThreads } from "./reader-threads.ts";

const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

/** Maximum page cache of a connection. With the default of 2 MiB, half of the page reads miss. */
const CACHE_KIB = 64 * 1024;

/** How long reads and writes wait for a lock of another program: a short lock causes no error, and clients receive a response in time. */
const MAX_WAIT_MS = 5000;
/** Pauses between attempts to get the lock: the first, doubled after each attempt up to the longest. */
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;
/** A pause that is longer by so much is one of this process, in which the other program may have been stopped, too. */
const MIN_STOP_MS = 500;
/** Interval of test writes after a failed write. */
const PROBE_MS = 1000;
/** Writes one page without changing data. */
const PROBE = rawSql("PRAGMA user_version = 1");

export class SqliteDatabase implements Database {
  readonly engine = "sqlite";
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #walSync: WalSync;
  readonly #threads: ReaderThreads;
  readonly #checkpoints: Checkpoints;
  readonly #turns = new ScanTurns();
  readonly #transaction: Queryable;
  readonly #maxWaitMs: number;
  readonly #transactions = new Serial();
  #problem: string | null = null;
  #probing: Repetition | null = null;

  private constructor(
    path: string,
    writer: SqliteConnection,
    reader: SqliteConnection,
    walSync: WalSync,
    maxWaitMs: number,
  ) {
    this.#maxWaitMs = maxWaitMs;
    this.#writer = writer;
    this.#reader = reader;
    this.#walSync = walSync;
    this.#threads = new ReaderThreads(path);
    this.#checkpoints = new Checkpoints(path, writer, (work) => this.#transactions.run(work));
    this.#transaction = asQueryable(writer);
  }

  /** `onSyncFailure` must end the process: after a failed sync the durability of commits is unknown. `maxWaitMs` is set by tests only. */
  static async open(
    path: string,
    onSyncFailure: (error: Error) => void,
    maxWaitMs: number = MAX_WAIT_MS,
  ): Promise<SqliteDatabase> {
    keepPrivate(path);
    const writer = SqliteConnection.open(path);
    writer.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;");
    writer.exec(`PRAGMA cache_size = -${CACHE_KIB}; PRAGMA wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES};`);
    // An empty write transaction makes SQLite create the -wal file, which must exist before the first real commit.
    writer.exec("BEGIN IMMEDIATE; PRAGMA user_version = 1; COMMIT;");
    syncFolder(dirname(path));
    const walSync = await WalSync.open(path, onSyncFailure);
    // A killed process may have left commits that are not synced, and reads do not wait for a sync.
    await walSync.sync();
    const reader = SqliteConnection.open(path, { readOnly: true });
    reader.exec(`PRAGMA cache_size = -${CACHE_KIB};`);
    // During the start SQLite may block; from now on it must not.
    writer.setBusyTimeout(0);
    reader.setBusyTimeout(0);
    return new SqliteDatabase(path, writer, reader, walSync, maxWaitMs);
  }

  get problem(): string | null {
    return this.#problem;
  }

  async all<Row>(query: SqlQuery): Promise<Row[]> {
    return this.#read(() => this.#reader.all<Row>(query));
  }

  scan<Row>(query: SqlQuery, turn: ScanTurn): Promise<Row[]> {
    return this.#turns.run(turn, () => this.#threads.all<Row>(query));
  }

  async get<Row>(query: SqlQuery): Promise<Row | undefined> {
    return this.#read(() => this.#reader.get<Row>(query));
  }

  run(query: SqlQuery): Promise<{ changes: number }> {
    return this.transaction((tx) => tx.run(query));
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#maxWaitMs;
    const result = await this.#transactions.run(() => this.#runTransaction(work, deadline));
    await this.#walSync.sync();
    return result;
  }

  async close(): Promise<void> {
    await this.#probing?.stop();
    await this.#transactions.idle();
    await this.#checkpoints.close();
    await this.#walSync.close();
    await this.#threads.close();
    this.#reader.close();
    this.#writer.close();
  }

  async #runTransaction<T>(work: (tx: Queryable) => Promise<T>, deadline: number): Promise<T> {
    try {
      if (!this.#tryBegin()) await retryWhileBusy(() => this.#writer.run(BEGIN), deadline);
      const result = await work(this.#transaction);
      this.#writer.run(COMMIT);
      this.#checkpoints.committed();
      if (this.#problem !== null) this.#recover();
      return result;
    } catch (error) {
      rollBack(this.#writer);
      this.#recordProblem(error);
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

  #recordProblem(error: unknown): void {
    if (isFullDisk(error)) this.#problem = "the disk is full";
    else if (isBusy(error)) this.#problem = "another program holds a lock on the database";
    else return;
    // Detects the recovery even if clients write nothing. The failure of a probe is recorded like that of any write.
    this.#probing ??= repeat(
      PROBE_MS,
      async () => void (await this.run(PROBE)),
      () => undefined,
    );
  }

  #recover(): void {
    this.#problem = null;
    // Not awaited: the probe itself may be the caller.
    void this.#probing?.stop();
    this.#probing = null;
  }
}

/** Retries until the deadline. Throws the last error, or the first error that is not about a lock. */
async function retryWhileBusy<T>(attempt: () => T, latest: number): Promise<T> {
  let deadline = latest;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    const before = performance.now();
    await sleep(pause);
    const lateMs = performance.now() - before - pause;
    if (lateMs > MIN_STOP_MS) deadline += lateMs;
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error;
    }
  }
}

/** Never throws: the caller has an error to report. After a failed rollback the next BEGIN fails. */
function rollBack(connection: SqliteConnection): void {
  try {
    connection.rollback();
  } catch {
    // The next BEGIN reports it.
  }
}

function asQueryable(connection: SqliteConnection): Queryable {
  return {
    all: async <Row>(query: SqlQuery) => connection.all<Row>(query),
    get: async <Row>(query: SqlQuery) => connection.get<Row>(query),
    run: async (query: SqlQuery) => connection.run(query),
  };
}
