/**
 * The control plane's database on SQLite: one writing and one reading connection on the same file.
 *
 * Invariants (beside those of the port):
 * 1. The writing connection is used only inside the write queue, so transactions never interleave.
 * 2. The queue moves on after COMMIT, not after the sync: transactions that commit meanwhile share the next sync.
 * 3. Reads use their own connection; in WAL mode they see the last commit and never wait for a writer.
 */
import { dirname } from "node:path";
import type { Database, Queryable } from "../ports/database.ts";
import { rawSql, type SqlQuery } from "../ports/sql.ts";
import { SqliteConnection } from "./connection.ts";
import { syncFolder } from "./sync-folder.ts";
import { WalSync } from "./wal-sync.ts";

const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

/** Page cache of each connection, used up only as far as the database is large; the default of 2 MiB misses on every other page. */
const CACHE_KIB = 64 * 1024;
/** Pages in the log before they are copied back, 32 MiB: a page that is changed often is then copied once instead of each time. */
const CHECKPOINT_PAGES = 8192;

export class SqliteDatabase implements Database {
  readonly engine = "sqlite";
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #walSync: WalSync;
  readonly #transaction: Queryable;
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(writer: SqliteConnection, reader: SqliteConnection, walSync: WalSync) {
    this.#writer = writer;
    this.#reader = reader;
    this.#walSync = walSync;
    this.#transaction = asQueryable(writer);
  }

  /** `onSyncFailure` must end the process: after it no commit of this database can be trusted. */
  static async open(path: string, onSyncFailure: (error: Error) => void): Promise<SqliteDatabase> {
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
    return new SqliteDatabase(writer, reader, walSync);
  }

  async all<Row>(query: SqlQuery): Promise<Row[]> {
    return this.#reader.all<Row>(query);
  }

  async get<Row>(query: SqlQuery): Promise<Row | undefined> {
    return this.#reader.get<Row>(query);
  }

  run(query: SqlQuery): Promise<{ changes: number }> {
    return this.transaction((tx) => tx.run(query));
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    const committed = this.#queue.then(() => this.#runTransaction(work));
    this.#queue = committed.catch(() => undefined);
    const result = await committed;
    await this.#walSync.sync();
    return result;
  }

  async close(): Promise<void> {
    await this.#queue;
    await this.#walSync.close();
    this.#reader.close();
    this.#writer.close();
  }

  async #runTransaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    this.#writer.run(BEGIN);
    try {
      const result = await work(this.#transaction);
      this.#writer.run(COMMIT);
      return result;
    } catch (error) {
      this.#writer.rollback();
      throw error;
    }
  }
}

function asQueryable(connection: SqliteConnection): Queryable {
  return {
    all: async <Row>(query: SqlQuery) => connection.all<Row>(query),
    get: async <Row>(query: SqlQuery) => connection.get<Row>(query),
    run: async (query: SqlQuery) => connection.run(query),
  };
}
