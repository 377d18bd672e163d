/** `ctx.storage`. All operations are synchronous below; those that return promises have taken effect when they return. */
import { rawSql, sql } from "../../core/sql.ts";
import { afterMicrotasks, type OutputGate } from "../../engines/turn-runtime/index.ts";
import { limitBlock } from "./block-limit.ts";
import { hasFlag } from "./compatibility.ts";
import { KvStorage, type ListOptions } from "./kv-storage.ts";
import type { ObjectAlarm } from "./object-alarm.ts";
import type { ObjectPast, ObjectSnapshot } from "./object-past.ts";
import { SqlStorage } from "./sql-storage.ts";
import type { StorageParts } from "./storage-parts.ts";

const SAVEPOINT = rawSql("SAVEPOINT object");
const RELEASE = rawSql("RELEASE object");
const ROLLBACK_TO = rawSql("ROLLBACK TO object");
const DEFER_FOREIGN_KEYS = rawSql("PRAGMA defer_foreign_keys = ON");

export interface ObjectStorageParts extends StorageParts {
  readonly outputs: OutputGate;
  readonly alarm: ObjectAlarm;
  readonly past: ObjectPast;
  /** The object has an `alarm` method, or is not constructed yet. */
  readonly hasAlarmHandler: () => boolean;
  /** Facets have no alarm. */
  readonly isFacet: boolean;
  /** Lets no other event start until the returned function is called. */
  readonly block: () => () => void;
  /** Ends the object at once. */
  readonly reset: (reason: Error) => void;
}

/** Options of operations with promises. Those about caches have nothing to change here. */
interface OperationOptions {
  /** Lets other events start while the operation is awaited. */
  readonly allowConcurrency?: boolean;
}

/**
 * What a transaction and the storage have in common. While a program awaits an operation no other event starts, so that it can read, compute and
 * write without a lock (the input gate of the originals).
 */
class Operations {
  protected readonly parts: ObjectStorageParts;
  readonly kv: KvStorage;
  #isGateShut = false;

  constructor(parts: ObjectStorageParts) {
    this.parts = parts;
    this.kv = new KvStorage(parts);
  }

  /** The value of one key, or a map of the values of several. */
  async get(keys: string | readonly string[], options?: OperationOptions): Promise<unknown> {
    this.begin(options);
    if (!Array.isArray(keys)) return this.kv.get(keys as string);
    const found = new Map<string, unknown>();
    for (const key of [...new Set(keys as string[])].toSorted(byBytes)) {
      const entry = this.kv.find(key);
      if (entry !== undefined) found.set(key, entry.value);
    }
    return found;
  }

  async put(
    keyOrEntries: string | Readonly<Record<string, unknown>>,
    value?: unknown,
    options?: OperationOptions,
  ): Promise<void> {
    const hasEntries = typeof keyOrEntries === "object" && keyOrEntries !== null;
    this.begin(hasEntries ? (value as OperationOptions | undefined) : options);
    if (!hasEntries) {
      if (value === undefined) throw new TypeError("put() called with undefined value.");
      this.kv.put(keyOrEntries, value);
    } else this.kv.putAll(Object.entries(keyOrEntries).filter(([, one]) => one !== undefined));
  }

  /** Whether there was a value, or for several keys the number of values. */
  async delete(keys: string | readonly string[], options?: OperationOptions): Promise<boolean | number> {
    this.begin(options);
    if (!Array.isArray(keys)) return this.kv.delete(keys as string);
    return (keys as string[]).filter((key) => this.kv.delete(key)).length;
  }

  async list(options?: (ListOptions & OperationOptions) | null): Promise<Map<string, unknown>> {
    this.begin(options);
    return new Map(this.kv.list(options));
  }

  async getAlarm(options?: OperationOptions): Promise<number | null> {
    this.begin(options);
    return this.parts.alarm.get();
  }

  async setAlarm(time: number | Date, options?: OperationOptions): Promise<void> {
    this.begin(options);
    if (this.parts.isFacet) throw new Error("Facets currently cannot set alarms.");
    if (!this.parts.hasAlarmHandler())
      throw new TypeError(
        "Your Durable Object class must have an alarm() handler in order to call setAlarm()",
      );
    if (typeof time !== "number" && !((time as unknown) instanceof Date))
      throw new TypeError(
        "Failed to execute 'setAlarm' on 'DurableObjectStorage': parameter 1 is not of type 'date'.",
      );
    const at = Math.trunc(Number(time));
    if (!Number.isFinite(at))
      throw new TypeError("The value cannot be converted because it is not a valid Date.");
    if (at <= 0) throw new TypeError("setAlarm() cannot be called with an alarm time <= 0");
    this.parts.alarm.set(at);
  }

  async deleteAlarm(options?: OperationOptions): Promise<void> {
    this.begin(options);
    if (this.parts.alarm.get() !== null || !this.parts.isFacet) this.parts.alarm.delete();
  }

  /** Shuts the gate until the code that awaits the operation has run, up to its next real wait. */
  protected begin(options: OperationOptions | null | undefined): void {
    if (this.#isGateShut || options?.allowConcurrency === true) return;
    this.#isGateShut = true;
    const unblock = this.parts.block();
    afterMicrotasks(() => {
      this.#isGateShut = false;
      unblock();
    });
  }
}

export class ObjectTransaction extends Operations {
  /** Why nothing can be done with it any more. */
  #end: "rolled back" | "over" | null = null;

  rollback(): void {
    if (this.#end === "rolled back") return;
    this.begin(undefined);
    this.#end = "rolled back";
    this.parts.database.run(ROLLBACK_TO);
  }

  /** The function has ended. */
  finish(): void {
    this.#end ??= "over";
  }

  protected override begin(options: OperationOptions | null | undefined): void {
    if (this.#end === "rolled back") throw new Error("This transaction has been rolled back.");
    if (this.#end === "over")
      throw new Error("This transaction has ended; did you use `txn` outside of its function?");
    super.begin(options);
  }
}

export class ObjectStorage extends Operations {
  readonly sql: SqlStorage;
  #wasEmptied = false;

  constructor(parts: ObjectStorageParts) {
    super(parts);
    this.sql = new SqlStorage(parts);
  }

  get [Symbol.toStringTag](): string {
    return "DurableObjectStorage";
  }

  /** Runs the function in a transaction, which is rolled back if the function throws. Events that arrive in the meantime wait. */
  async transaction<T>(work: (transaction: ObjectTransaction) => Promise<T> | T): Promise<T> {
    const { block, database, reset, transactions } = this.parts;
    const release = transactions.hold();
    const unblock = block();
    const endLimit = limitBlock("transaction", reset);
    const transaction = new ObjectTransaction(this.parts);
    try {
      database.run(SAVEPOINT);
      return await this.#within(async () => work(transaction));
    } finally {
      endLimit();
      transaction.finish();
      release();
      afterMicrotasks(unblock);
    }
  }

  /** The part of a transaction after its savepoint. */
  async #within<T>(work: () => Promise<T>): Promise<T> {
    const { database, transactions } = this.parts;
    try {
      const result = await work();
      transactions.requirePresent();
      database.run(RELEASE);
      return result;
    } catch (error) {
      this.#undo();
      throw error;
    }
  }

  /** Runs a synchronous function in a transaction, which is rolled back if the function throws. */
  transactionSync<T>(work: () => T): T {
    const { database, transactions } = this.parts;
    transactions.open();
    database.run(SAVEPOINT);
    let result: T;
    try {
      result = work();
    } catch (error) {
      this.#undo();
      throw error;
    }
    transactions.requirePresent();
    database.run(RELEASE);
    return result;
  }

  /** Rolls back to the savepoint. An object that was aborted in the meantime has been rolled back already. */
  #undo(): void {
    const { database, transactions } = this.parts;
    if (!transactions.isOpen) return;
    database.run(ROLLBACK_TO);
    database.run(RELEASE);
  }

  /** Removes everything that the object stored, and its alarm. */
  async deleteAll(): Promise<void> {
    const { database, transactions } = this.parts;
    this.begin(undefined);
    this.transactionSync(() => {
      transactions.open();
      database.run(DEFER_FOREIGN_KEYS);
      // Triggers first: they would run for the deleted rows. References are checked at the end, when there is none left; a table may also refer to one that
      // never existed, which only DROP does not mind.
      for (const name of this.#names("trigger")) this.sql.exec(`DROP TRIGGER IF EXISTS ${quoted(name)}`);
      for (const name of this.#names("view")) this.sql.exec(`DROP VIEW IF EXISTS ${quoted(name)}`);
      for (const name of this.#virtualTables()) this.sql.exec(`DROP TABLE IF EXISTS ${quoted(name)}`);
      for (const name of this.#names("table")) this.sql.exec(`DROP TABLE IF EXISTS ${quoted(name)}`);
      this.kv.deleteAll();
      if (hasFlag("delete_all_deletes_alarm")) this.parts.alarm.delete();
    });
    this.parts.counters.reset();
    this.#wasEmptied = true;
  }

  /** True when everything was deleted while the object was in memory, and nothing has been stored since. */
  get isEmptied(): boolean {
    if (!this.#wasEmptied) return false;
    const row = this.parts.database.get<{ used: number }>(
      sql`SELECT (SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
            AND name NOT LIKE '\\_signalbox\\_%' ESCAPE '\\')
          + (SELECT count(*) FROM _signalbox_kv) + (SELECT count(*) FROM _signalbox_facet)
          + (SELECT count(*) FROM _signalbox_object WHERE alarm_at IS NOT NULL) AS used`,
    );
    return row?.used === 0;
  }

  /** Resolves when everything written so far is durable. */
  sync(): Promise<void> {
    return this.parts.outputs.pass();
  }

  /** A name for what is stored now, to which the object can be restored. */
  async getCurrentBookmark(): Promise<string> {
    return this.parts.past.current();
  }

  async getBookmarkForTime(time: number | Date): Promise<string> {
    if (typeof time !== "number" && !((time as unknown) instanceof Date))
      throw new TypeError(
        "Failed to execute 'getBookmarkForTime' on 'DurableObjectStorage': parameter 1 is not of type 'date'.",
      );
    const at = Number(time);
    if (!Number.isFinite(at))
      throw new TypeError("The value cannot be converted because it is not a valid Date.");
    return this.parts.past.at(at);
  }

  /** The next start of the object begins with the content of the bookmark. Returns the bookmark of what is stored until then. */
  async onNextSessionRestoreBookmark(bookmark: string): Promise<string> {
    return this.parts.past.restoreBookmark(requireText(bookmark, "onNextSessionRestoreBookmark"));
  }

  /** Resolves when what the bookmark stands for is durable, which it is when a program receives it. */
  async waitForBookmark(bookmark: string): Promise<void> {
    requireText(bookmark, "waitForBookmark");
    await this.sync();
  }

  /** What is stored now, or was stored at a bookmark, for another object. */
  async snapshot(options?: { readonly bookmark?: string } | null): Promise<ObjectSnapshot> {
    return this.parts.past.snapshot(options?.bookmark);
  }

  /** The next start of the object begins with the content of the snapshot, without its alarm. Returns the bookmark of what is stored until then. */
  async onNextSessionRestore(snapshot: ObjectSnapshot): Promise<string> {
    if (typeof snapshot?.object !== "string" || typeof snapshot.bookmark !== "string")
      throw new TypeError(
        "Failed to execute 'onNextSessionRestore' on 'DurableObjectStorage': parameter 1 is not of type 'DurableObjectSnapshot'.",
      );
    return this.parts.past.restoreSnapshot(snapshot);
  }

  #names(type: "table" | "trigger" | "view"): string[] {
    const rows = this.parts.database.all<{ name: string }>(
      sql`SELECT name FROM sqlite_schema WHERE type = ${type} AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
          AND name NOT LIKE '\\_signalbox\\_%' ESCAPE '\\'`,
    );
    return rows.map(({ name }) => name);
  }

  #virtualTables(): string[] {
    const rows = this.parts.database.all<{ name: string }>(
      sql`SELECT name FROM pragma_table_list WHERE type = 'virtual' AND schema = 'main'`,
    );
    return rows.map(({ name }) => name);
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function requireText(value: unknown, method: string): string {
  if (typeof value === "string") return value;
  throw new TypeError(
    `Failed to execute '${method}' on 'DurableObjectStorage': parameter 1 is not of type 'string'.`,
  );
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
