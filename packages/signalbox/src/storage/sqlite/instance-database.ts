/**
 * One instance's SQLite file, open: WAL, exclusive locking, no sync at commit; `sync` makes commits durable off the event loop.
 *
 * Invariants (beside those of the port):
 * 1. The `-wal` file is opened for syncing before the first commit, and its name in the folder is synced with the first `sync`.
 * 2. Agents' statements are compiled and run under the guard; the runtime's own are not.
 * 3. No sync blocks the event loop, except those of a checkpoint in a long life. SQLite would sync twice more on its own: the log's header
 *    before the first commit (it guards against old frames in a log that is used again, and a log that was just created has none), and
 *    the database when it closes. The first is left out, the second is done here in the thread pool before SQLite removes the log.
 * 4. A log left behind by a process that was killed is synced before anything reads it: the dead process may not have got that far, and
 *    an answer that only reads waits for no sync. It is folded in at the close as any other, though nothing may have been committed since.
 */
import { statSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { type AgentStatement, type InstanceDatabase, SqlError } from "../ports/instance-store.ts";
import { rawSql, type SqlQuery, type SqlValue } from "../ports/sql.ts";
import { type PreparedStatement, SqliteConnection } from "./connection.ts";
import type { FolderSync } from "./folder-sync.ts";
import { checkSchema } from "./instance-template.ts";
import { StatementGuard } from "./statement-guard.ts";
import { WalSync } from "./wal-sync.ts";

const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

/**
 * Exclusive: no other process or connection gets in, and SQLite needs no shared-memory file. The page cache is bounded to 256 KiB. Until
 * the first commit nothing is synced and so nothing may be checkpointed.
 */
const SETTINGS_AT_FIRST = `PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0;
  PRAGMA cache_size = -256; PRAGMA temp_store = MEMORY;`;
/**
 * From the first commit on, and from the beginning with a log that a killed process left: SQLite syncs the log before and the database after
 * a checkpoint, and before it starts the log again. Those syncs are the only ones that block the event loop. A webhook of 4 KB writes dozens of
 * pages of 1 KiB: a checkpoint each thousand pages would cost half of a busy instance's rate. At 8,000 its log grows to 8 MiB.
 */
const SETTINGS_WITH_LOG = "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 8000;";
/** Everything committed is synced in the log; what remains is to copy it. */
const COPY_LOG = "PRAGMA synchronous = OFF; PRAGMA wal_checkpoint(PASSIVE);";

/** Texts of an agent's statements that are kept compiled; more than any sensible agent has. */
const STATEMENT_CACHE_SIZE = 64;

export class SqliteInstanceDatabase implements InstanceDatabase {
  readonly isNew: boolean;
  readonly #path: string;
  readonly #connection: SqliteConnection;
  readonly #guard: StatementGuard;
  readonly #walSync: WalSync;
  readonly #folderSync: FolderSync;
  readonly #byParts = new WeakMap<readonly string[], AgentStatement>();
  readonly #byText = new Map<string, AgentStatement>();
  readonly #onSyncFailure: (error: Error) => void;
  #isNameSynced = false;
  /** The log has, or may have, frames. */
  #hasLog = false;

  private constructor(
    path: string,
    isNew: boolean,
    connection: SqliteConnection,
    guard: StatementGuard,
    walSync: WalSync,
    folderSync: FolderSync,
    onSyncFailure: (error: Error) => void,
  ) {
    this.#onSyncFailure = onSyncFailure;
    this.#path = path;
    this.isNew = isNew;
    this.#connection = connection;
    this.#guard = guard;
    this.#walSync = walSync;
    this.#folderSync = folderSync;
  }

  static async open(
    path: string,
    isNew: boolean,
    folderSync: FolderSync,
    onSyncFailure: (error: Error) => void,
  ): Promise<SqliteInstanceDatabase> {
    const connection = SqliteConnection.open(path, { busyTimeoutMs: 0 });
    try {
      // In exclusive mode SQLite creates the -wal file with its first look at the database, that is here.
      connection.exec(SETTINGS_AT_FIRST);
      checkSchema(connection);
      const guard = new StatementGuard();
      connection.setAuthorizer(guard.authorize);
      const walSync = await WalSync.open(path, onSyncFailure);
      const database = new SqliteInstanceDatabase(
        path,
        isNew,
        connection,
        guard,
        walSync,
        folderSync,
        onSyncFailure,
      );
      if (statSync(`${path}-wal`).size > 0) {
        database.#logIsInUse();
        await database.sync();
      }
      return database;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  all<Row>(query: SqlQuery): Row[] {
    return this.#connection.all<Row>(query);
  }

  get<Row>(query: SqlQuery): Row | undefined {
    return this.#connection.get<Row>(query);
  }

  run(query: SqlQuery): { changes: number } {
    return this.#connection.run(query);
  }

  agentStatement(parts: readonly string[]): AgentStatement {
    const known = this.#byParts.get(parts);
    if (known !== undefined) return known;
    const text = parts.join("?");
    let statement = this.#byText.get(text);
    if (statement === undefined) {
      statement = this.#compile(text);
      this.#byText.set(text, statement);
      if (this.#byText.size > STATEMENT_CACHE_SIZE) {
        const oldest = this.#byText.keys().next();
        if (!oldest.done) this.#byText.delete(oldest.value);
      }
    }
    if (Object.isFrozen(parts)) this.#byParts.set(parts, statement);
    return statement;
  }

  begin(): void {
    this.#connection.run(BEGIN);
  }

  commit(): void {
    this.#connection.run(COMMIT);
    if (!this.#hasLog) this.#logIsInUse();
  }

  rollback(): void {
    this.#connection.rollback();
  }

  async sync(): Promise<void> {
    if (this.#isNameSynced) return this.#walSync.sync();
    await Promise.all([this.#walSync.sync(), this.#folderSync.sync(dirname(this.#path))]);
    this.#isNameSynced = true;
  }

  snapshot(): Uint8Array {
    return this.#connection.serialize();
  }

  async close(): Promise<void> {
    try {
      if (this.#hasLog) await this.#foldLog();
    } finally {
      await this.#walSync.close();
      this.#byText.clear();
      this.#connection.close();
    }
  }

  #logIsInUse(): void {
    this.#hasLog = true;
    this.#connection.exec(SETTINGS_WITH_LOG);
  }

  /** Copies the log into the main file and makes that durable, so that closing has nothing left to do but to remove the log. */
  async #foldLog(): Promise<void> {
    // With its name: a log that is gone after a power cut could not complete a half-copied main file.
    await this.sync();
    this.#connection.exec(COPY_LOG);
    const file = await open(this.#path, "r");
    try {
      await file.datasync();
      // Before the descriptor: closing any descriptor of the file drops SQLite's locks on it.
      this.#connection.close();
    } catch (error) {
      this.#onSyncFailure(error instanceof Error ? error : new Error(String(error)));
      throw error;
    } finally {
      await file.close();
    }
  }

  #compile(text: string): AgentStatement {
    const { statement, isWrite } = this.#prepare(text);
    if (hasStatement(text.slice(statement.text.length))) return this.#script(text);
    return {
      isWrite,
      all: (values) => this.#explained(text, () => this.#guard.run(() => statement.all(values))),
    };
  }

  /**
   * Several statements in one text run in order, and the last one's rows count. Each is compiled only when those before it have run,
   * since it may need a table they create; so none of them is kept, and the script counts as a write.
   */
  #script(text: string): AgentStatement {
    return {
      isWrite: true,
      all: (values) => {
        if (values.length > 0)
          throw new SqlError("several statements in one text cannot take values; run them one by one", text);
        let rows: Record<string, SqlValue>[] = [];
        for (let rest = text; hasStatement(rest);) {
          const { statement } = this.#prepare(rest);
          rows = this.#explained(rest, () => this.#guard.run(() => statement.all([])));
          rest = rest.slice(statement.text.length);
        }
        return rows;
      },
    };
  }

  #prepare(text: string): { statement: PreparedStatement; isWrite: boolean } {
    return this.#explained(text, () => this.#guard.compile(() => this.#connection.prepare(text)));
  }

  #explained<T>(text: string, work: () => T): T {
    try {
      return work();
    } catch (cause) {
      const message = this.#guard.refusal ?? (cause instanceof Error ? cause.message : String(cause));
      throw new SqlError(message, text.trim(), cause);
    }
  }
}

/** True when text holds more than blanks, comments and semicolons. */
function hasStatement(text: string): boolean {
  return text.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]+/g, "") !== "";
}
