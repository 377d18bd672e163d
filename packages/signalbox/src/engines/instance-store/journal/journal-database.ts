/**
 * One instance's SQLite file, open: WAL, exclusive locking. SQLite itself never syncs; `sync` hands what was committed to the journal.
 *
 * Invariants (beside those of the port):
 * 1. The log is copied into the main file (*folded*) only when all of it is durable in the journal: a replay writes what the journal has over the
 *    main file, and must not meet anything newer there.
 * 2. Agents' statements are compiled and run under the guard; the runtime's own are not.
 * 3. Descriptors of the main file are closed after SQLite has closed it: closing any of them drops SQLite's locks.
 */
import { closeSync, fchmodSync, fdatasync, openSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { type AgentStatement, type InstanceDatabase, SqlError } from "../instance-store.ts";
import { rawSql, type SqlQuery, type SqlValue } from "../../../core/sql.ts";
import {
  isFullDisk,
  type PreparedStatement,
  SqliteConnection,
  StatementCache,
  textOf,
} from "../../sqlite-file/index.ts";
import { requireSchema } from "./template.ts";
import type { CacheBudget } from "./cache-budget.ts";
import type { DiskRoom } from "../disk-room.ts";
import type { Entry, Journal } from "./journal.ts";
import { WalTail } from "./wal-reader.ts";
import { writeWhole } from "./write-whole.ts";
import type { LogFile, LogFiles } from "./spare-wal.ts";
import { type Compiled, StatementGuard } from "../statement-guard.ts";

const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

/**
 * Exclusive: no other process or connection gets in, and SQLite needs no shared-memory file. The page cache is bounded to 256 KiB; it begins at
 * two pages, because SQLite reserves room for twenty at once for any that may hold more.
 */
const SETTINGS = `PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0;
  PRAGMA cache_size = 2; PRAGMA shrink_memory; PRAGMA temp_store = MEMORY; PRAGMA user_version; PRAGMA cache_size = -256;`;
/** For an instance that has filled its log once: the hundred events of 4 KB that webhooks keep fit, with room to spare. */
const LARGE_CACHE = rawSql("PRAGMA cache_size = -1024");
/** Copies the log into the main file; the next commit starts the log over. */
const FOLD = rawSql("PRAGMA wal_checkpoint(PASSIVE)");
/** A webhook of 4 KB writes dozens of pages of 1 KiB: a log folded at a few hundred would cost a busy instance much of its rate. */
const FOLD_BYTES = 8 * 1024 * 1024;

/** A log that could not be folded is tried again after this. */
const RETRY_MS = 250;

/** Texts of an agent's statements that are kept compiled; more than any sensible agent has. */
const STATEMENT_CACHE_SIZE = 64;

/** Where an instance's files are, and what the journal calls it. */
export interface InstancePlace {
  readonly path: string;
  /** 40 hexadecimal digits. */
  readonly id: string;
  /** The id's bytes. */
  readonly key: Buffer;
}

/** What a database shares with the others. */
export interface InstanceDatabaseParts {
  readonly journal: Journal;
  readonly logs: LogFiles;
  readonly caches: CacheBudget;
  readonly room: DiskRoom;
  readonly onClose: () => void;
}

const NOTHING_YET: Entry = { durable: Promise.resolve(), isDurable: true };
const datasync = promisify(fdatasync);
const nextLoop = promisify(setImmediate);

export class SqliteInstanceDatabase implements InstanceDatabase {
  readonly isNew: boolean;
  readonly #place: InstancePlace;
  readonly #connection: SqliteConnection;
  readonly #guard = new StatementGuard();
  readonly #journal: Journal;
  readonly #logs: LogFiles;
  readonly #caches: CacheBudget;
  readonly #room: DiskRoom;
  readonly #onClose: () => void;
  readonly #log: LogFile;
  readonly #tail: WalTail;
  readonly #agentStatements = new StatementCache<AgentStatement>(STATEMENT_CACHE_SIZE);
  /** The last record handed to the journal. */
  #journalled: Entry = NOTHING_YET;
  /** Of the main file; closed after SQLite's own. */
  readonly #descriptors: number[] = [];
  #settling: Promise<void> = Promise.resolve();
  /** Those who wait for the open transaction to end; a busy instance has one open nearly always. */
  #onEnd: (() => void)[] = [];
  #closed: Promise<void> | null = null;
  #tableChanges = 0;
  #hasLargeCache = false;

  private constructor(
    place: InstancePlace,
    isNew: boolean,
    connection: SqliteConnection,
    log: LogFile,
    { journal, logs, caches, room, onClose }: InstanceDatabaseParts,
  ) {
    this.#place = place;
    this.isNew = isNew;
    this.#connection = connection;
    this.#journal = journal;
    this.#logs = logs;
    this.#caches = caches;
    this.#room = room;
    this.#onClose = onClose;
    this.#log = log;
    this.#tail = new WalTail(log.fd);
    connection.setAuthorizer(this.#guard.authorize);
  }

  /** With bytes that a new file is to start as, there is no file yet; with null, there is one. */
  static open(
    place: InstancePlace,
    template: Uint8Array | null,
    parts: InstanceDatabaseParts,
  ): SqliteInstanceDatabase {
    const { logs } = parts;
    const { path } = place;
    const isNew = template !== null;
    const log = logs.lay(path, isNew);
    let connection: SqliteConnection | undefined;
    try {
      connection = SqliteConnection.open(path, { busyTimeoutMs: 0 });
      if (isNew) fill(path, template);
      connection.exec(SETTINGS);
      if (!isNew) requireSchema(connection);
      return new SqliteInstanceDatabase(place, isNew, connection, log, parts);
    } catch (error) {
      logs.putAside(path, log);
      connection?.close();
      logs.giveBack(log, Number.POSITIVE_INFINITY);
      // Half a file would be taken for an instance that is there.
      if (isNew) rmSync(path, { force: true });
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
    try {
      return this.#connection.run(query);
    } catch (error) {
      throw this.#room.explain(error);
    }
  }

  agentStatement(parts: readonly string[]): AgentStatement {
    const known = this.#agentStatements.get(parts);
    if (known !== undefined) return known;
    const statement = this.#compile(textOf(parts));
    this.#agentStatements.set(parts, statement);
    return statement;
  }

  get tableChanges(): number {
    return this.#tableChanges;
  }

  begin(): void {
    this.#room.require();
    this.run(BEGIN);
  }

  commit(): void {
    this.run(COMMIT);
    this.#transactionEnded();
  }

  rollback(): void {
    this.#connection.rollback();
    this.#transactionEnded();
  }

  secure(): void {
    this.#journalTail();
    this.#journal.writeNow();
  }

  sync(): Promise<void> {
    this.#journalTail();
    return this.#journalled.durable;
  }

  /** Resolves with true when everything committed by now is on the disk in the main file; with false when the instance was closed first. */
  async settle(): Promise<boolean> {
    do {
      await this.sync();
      await this.#betweenTransactions();
      if (this.#closed !== null) return false;
    } while (!this.#fold());
    const [descriptor = openSync(this.#place.path, "r")] = this.#descriptors;
    this.#descriptors[0] = descriptor;
    this.#settling = datasync(descriptor);
    await this.#settling;
    return true;
  }

  /** Takes over a descriptor of the main file, which must not be closed before SQLite has closed it. */
  adopt(descriptor: number): void {
    this.#descriptors.push(descriptor);
  }

  snapshot(): Uint8Array {
    return this.#connection.serialize();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // The log may be folded only when the journal has it. If the journal fails, which ends the process, it must not.
    await this.sync();
    await this.#settling;
    await this.#foldAll();
    this.#agentStatements.clear();
    this.#logs.putAside(this.#place.path, this.#log);
    this.#connection.close();
    this.#logs.giveBack(this.#log, this.#tail.extent);
    for (const descriptor of this.#descriptors) closeSync(descriptor);
    if (this.#hasLargeCache) this.#caches.giveBack();
    this.#onClose();
  }

  #journalTail(): void {
    const frames = this.#tail.read();
    if (frames.length === 0) return;
    const { id, key } = this.#place;
    this.#journalled = this.#journal.committed(id, key, this.#tail.pageBytes, frames);
    if (this.#tail.length > FOLD_BYTES) void this.#foldSoon();
  }

  async #foldSoon(): Promise<void> {
    try {
      await this.#journalled.durable;
      await this.#betweenTransactions();
      if (this.#closed !== null || this.#tail.length <= FOLD_BYTES) return;
      if (this.#fold()) this.#enlargeCache();
    } catch {
      // Of a failed sync, whoever waits for it hears. A failed fold (the disk is full, say) is tried again with the next commit.
    }
  }

  /** SQLite would do so at the close, but would not tell if it could not; and the log, which goes to another instance, is the only other place. */
  async #foldAll(): Promise<void> {
    let isStalled = false;
    for (;;) {
      try {
        if (this.#fold()) break;
      } catch (error) {
        if (!isFullDisk(error)) throw error;
        if (!isStalled) this.#room.closingStalled(error);
        isStalled = true;
      }
      await sleep(RETRY_MS);
    }
    if (isStalled) this.#room.closingGoesOn();
  }

  #enlargeCache(): void {
    if (this.#hasLargeCache || !this.#caches.take()) return;
    this.#hasLargeCache = true;
    this.#connection.run(LARGE_CACHE);
  }

  #betweenTransactions(): Promise<void> {
    if (!this.#connection.isInTransaction) return nextLoop();
    return new Promise((resolve) => this.#onEnd.push(resolve));
  }

  #transactionEnded(): void {
    if (this.#onEnd.length > 0) for (const resolve of this.#onEnd.splice(0)) resolve();
  }

  /**
   * Copies the log into the main file. False when that was not possible, and another try will be: it needs a moment where no transaction is
   * open. Turns that end before the next sync share one, which may stay open over several rounds of the event loop.
   */
  #fold(): boolean {
    if (this.#connection.isInTransaction) return false;
    // An instance that never rests would never be durable to its last commit, so the last ones are synced right here.
    this.#journalTail();
    if (!this.#journalled.isDurable && !this.#journal.flushNow()) return false;
    if (this.#tail.length === 0) return true;
    const outcome = this.#connection.get<{ log: number; checkpointed: number }>(FOLD);
    if (outcome?.log !== outcome?.checkpointed) return false;
    this.#tail.startOver();
    return true;
  }

  #compile(text: string): AgentStatement {
    const compiled = this.#prepare(text);
    const { statement, isWrite, inserts, createsTrigger } = compiled;
    if (hasStatement(text.slice(statement.text.length))) return this.#script(text);
    return {
      isWrite,
      mayInsert: (table) => createsTrigger || inserts.has(table),
      all: (values) => this.#execute(text, compiled, values),
    };
  }

  /**
   * Several statements in one text run in order, and the last one's rows count. Each is compiled only when those before it have run,
   * since it may need a table they create; so none of them is kept, and the script counts as a write to any table.
   */
  #script(text: string): AgentStatement {
    return {
      isWrite: true,
      mayInsert: () => true,
      all: (values) => {
        if (values.length > 0)
          throw new SqlError("several statements in one text cannot take values; run them one by one", text);
        let rows: Record<string, SqlValue>[] = [];
        for (let rest = text; hasStatement(rest);) {
          const compiled = this.#prepare(rest);
          rows = this.#execute(rest, compiled, []);
          rest = rest.slice(compiled.statement.text.length);
        }
        return rows;
      },
    };
  }

  #execute(
    text: string,
    { statement, changesTables }: Compiled<PreparedStatement>,
    values: readonly SqlValue[],
  ): Record<string, SqlValue>[] {
    if (changesTables) this.#tableChanges += 1;
    return this.#explained(text, () => this.#guard.run(() => statement.all(values)));
  }

  #prepare(text: string): Compiled<PreparedStatement> {
    const compiled = this.#explained(text, () => this.#guard.compile(() => this.#connection.prepare(text)));
    if (compiled.isWrite) compiled.statement.neverRunTwice();
    return compiled;
  }

  #explained<T>(text: string, work: () => T): T {
    try {
      return work();
    } catch (cause) {
      const explained = this.#room.explain(cause);
      // Not the statement's fault.
      if (explained !== cause) throw explained;
      const message = this.#guard.refusal ?? (cause instanceof Error ? cause.message : String(cause));
      throw new SqlError(message, text.trim(), cause);
    }
  }
}

/**
 * Gives a file that SQLite has just created its first content, before SQLite has read or locked it. SQLite creates it, because it looks through
 * all files that it has open for one that is there already. Small calls are made directly: each is quicker than a trip to the thread pool.
 */
function fill(path: string, bytes: Uint8Array): void {
  const file = openSync(path, "r+");
  try {
    fchmodSync(file, 0o600);
    writeWhole(file, bytes, 0);
  } finally {
    closeSync(file);
  }
}

/** True when text holds more than blanks, comments and semicolons. */
function hasStatement(text: string): boolean {
  return text.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]+/g, "") !== "";
}
