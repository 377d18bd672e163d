/**
 * An open database of the plain engine: SQLite in WAL mode with `synchronous=NORMAL`, and one fdatasync of its own WAL for each `sync`. SQLite
 * itself syncs where it starts the WAL over and where it checkpoints, so a synced commit is never lost.
 *
 * Invariant: `PRAGMA user_version` is 0 until the first commit, which sets it. A file of version 0 is what a crash left of a creation; `open` creates
 * such a database again.
 */
import { closeSync, existsSync, openSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { rawSql, type SqlQuery } from "../../../core/sql.ts";
import { SqliteConnection, WalSync } from "../../sqlite-file/index.ts";
import type { DiskRoom } from "../disk-room.ts";
import { GuardedDatabase } from "../guarded-database.ts";
import type { BaseSchema } from "../instance-store.ts";
import { PAGE_BYTES } from "../page-bytes.ts";
import type { ReservedNames } from "../reserved-names.ts";
import { readVersion, requireVersion } from "../schema-version.ts";

/** Exclusive: no other connection opens the database, and SQLite needs no shared-memory file. */
const SETTINGS = `PRAGMA page_size = ${PAGE_BYTES}; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -256`;

/** What all databases of a store share. */
export interface PlainParts {
  readonly baseSchema: BaseSchema;
  readonly reserved: ReservedNames;
  readonly room: DiskRoom;
  readonly onFailure: (error: Error) => void;
  readonly onClose: (path: string) => void;
}

export class PlainDatabase extends GuardedDatabase {
  readonly #path: string;
  readonly #walSync: WalSync;
  readonly #parts: PlainParts;
  readonly #setVersion: SqlQuery;
  #hasVersion: boolean;
  /** The sync that covers all commits; null if a commit has followed the last sync. */
  #synced: Promise<void> | null = null;
  #closed: Promise<void> | null = null;
  /** Called at the end of the open transaction. */
  #onTransactionEnd: (() => void)[] = [];

  private constructor(
    path: string,
    connection: SqliteConnection,
    isNew: boolean,
    walSync: WalSync,
    parts: PlainParts,
  ) {
    super(connection, isNew, parts.room, parts.reserved);
    this.#path = path;
    this.#walSync = walSync;
    this.#parts = parts;
    this.#hasVersion = !isNew;
    this.#setVersion = rawSql(`PRAGMA user_version = ${parts.baseSchema.version}`);
  }

  static async open(path: string, schema: string, parts: PlainParts): Promise<PlainDatabase> {
    const connection = openExisting(path, parts.baseSchema) ?? create(path, parts.baseSchema.create + schema);
    try {
      const walSync = await WalSync.open(path, parts.onFailure);
      return new PlainDatabase(path, connection, readVersion(connection) === 0, walSync, parts);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  override commit(): void {
    if (!this.#hasVersion) this.run(this.#setVersion);
    super.commit();
    this.#hasVersion = true;
    this.#synced = null;
    this.#transactionEnded();
  }

  override rollback(): void {
    super.rollback();
    this.#transactionEnded();
  }

  flush(): null {
    return null;
  }

  sync(): Promise<void> {
    this.#synced ??= this.#walSync.sync();
    return this.#synced;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Copies the last commit to a new file, through memory. Resolves with false if the database is being closed: copy the closed file. */
  async copyTo(path: string): Promise<boolean> {
    const bytes = await new Promise<Uint8Array | null>((resolve) => {
      const take = () => resolve(this.#closed === null ? this.snapshot() : null);
      // SQLite would include what the transaction has written.
      if (this.connection.isInTransaction) this.#onTransactionEnd.push(take);
      else take();
    });
    if (bytes !== null) await writeFile(path, bytes, { mode: 0o600 });
    return bytes !== null;
  }

  #transactionEnded(): void {
    for (const take of this.#onTransactionEnd.splice(0)) take();
  }

  async #close(): Promise<void> {
    if (!this.#hasVersion) this.#commitVersion();
    await this.sync();
    await this.#walSync.close();
    // SQLite checkpoints and removes the WAL. If the disk is full, the WAL stays and the next open reads it.
    this.closeConnection();
    this.#parts.onClose(this.#path);
  }

  /** If this fails, the database does not exist after the close, as after a crash. */
  #commitVersion(): void {
    try {
      this.begin();
      this.commit();
    } catch {
      this.rollback();
    }
  }
}

/** Null if the file does not exist, or holds no commit. */
function openExisting(path: string, schema: BaseSchema): SqliteConnection | null {
  if (!existsSync(path)) return null;
  const connection = SqliteConnection.open(path, { busyTimeoutMs: 0, takesQuotedText: true });
  try {
    connection.exec(SETTINGS);
    if (readVersion(connection) === 0) {
      connection.close();
      removeDatabase(path);
      return null;
    }
    requireVersion(connection, schema);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function create(path: string, schema: string): SqliteConnection {
  let connection: SqliteConnection | undefined;
  try {
    // SQLite gives the WAL the permissions of the database.
    closeSync(openSync(path, "w", 0o600));
    connection = SqliteConnection.open(path, { busyTimeoutMs: 0, takesQuotedText: true });
    connection.exec(`${SETTINGS}; BEGIN IMMEDIATE; ${schema}; COMMIT`);
    // Another connection counts the changes of rows: those of the creation are nobody's.
    connection.close();
    connection = SqliteConnection.open(path, { busyTimeoutMs: 0, takesQuotedText: true });
    connection.exec(SETTINGS);
    return connection;
  } catch (error) {
    connection?.close();
    removeDatabase(path);
    throw error;
  }
}

/** Removes the database and what SQLite keeps beside it. */
export function removeDatabase(path: string): void {
  for (const suffix of ["-journal", "-wal", ""]) rmSync(path + suffix, { force: true });
}
