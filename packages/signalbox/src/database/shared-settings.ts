/**
 * Settings that are written rarely and read by every request, from memory. Each kind has one store, which reads its rows from the database
 * again after a write.
 *
 * Invariants of every implementation:
 * 1. When `write` resolves, the write is durable and the store has its result. In a cluster the stores of all living nodes have it.
 * 2. Reads of rows into memory run one after the other, so an older row never replaces a newer one.
 * 3. After `write` the stores also have every write that was committed before it, of all kinds and nodes.
 */
import { SignalboxError } from "@signalbox/protocol";
import { fullJitterDelay } from "../core/retry.ts";
import { Serial } from "../core/serial.ts";
import type { Database, Queryable } from "./database.ts";

/** In the order in which changes are read: a store may use those before it. */
export const SETTINGS_KINDS = [
  "account",
  "token",
  "session",
  "gateway",
  "custom_provider",
  "provider_key",
  "route",
  "prices",
  "limits",
  "guardrails",
  "circuits",
  "alert",
  "webhook_route",
] as const;

export type SettingsKind = (typeof SETTINGS_KINDS)[number];

/** In place of many keys: all rows of the kind are read again. No row has this key. */
export const ALL_KEYS = "*";
/** Above this number of changed keys it is cheaper to read all rows, and statements have a limited number of values. */
const MAX_KEYS = 1000;

/** Between attempts to read what a write has changed. */
const READ_RETRY = { baseDelayMs: 500, maxDelayMs: 10_000 };

/** The copy of one kind in memory. */
export interface SettingsStore {
  /** Reads the rows with these keys again; null: all rows. A key without a row was deleted. Must not write settings. */
  reload(keys: readonly string[] | null): Promise<void>;
}

/** Reports the key of a row that the transaction inserts, changes or deletes. */
export type ReportChange = (key: string) => void;

export interface SharedSettings {
  /** True if other nodes write the same settings. */
  readonly isShared: boolean;
  register(kind: SettingsKind, store: SettingsStore): void;
  /** Reads all rows of a kind. */
  load(kind: SettingsKind): Promise<void>;
  /**
   * Runs `work` in a transaction; no other settings are written at the same time, on any node. What `work` decides must depend on rows that it
   * reads itself, because memory may be older.
   */
  write<T>(kind: SettingsKind, work: (tx: Queryable, changed: ReportChange) => Promise<T>): Promise<T>;
  /** Resolves when every living node has read what the database has at the time of the call. */
  confirm(): Promise<void>;
}

/**
 * What a deletion is about, from memory. If it is missing, its deletion may have been committed by a node that died before it told the others: the
 * refusal is answered when they know it.
 */
export async function findToDelete<T>(settings: SharedSettings, find: () => T): Promise<T> {
  try {
    return find();
  } catch (error) {
    await settings.confirm();
    throw error;
  }
}

/** The registered stores, and the order of their reads. */
export class SettingsStores {
  readonly #stores = new Map<string, SettingsStore>();
  readonly #reads = new Serial();

  register(kind: SettingsKind, store: SettingsStore): void {
    this.#stores.set(kind, store);
  }

  /** Runs `work` after all earlier reads. */
  inOrder<T>(work: () => Promise<T>): Promise<T> {
    return this.#reads.run(work);
  }

  /** Called within `inOrder`. A kind without a store is ignored: its rows are read later. */
  async reload(kind: SettingsKind, keys: readonly string[] | null): Promise<void> {
    const isWhole = keys === null || keys.length > MAX_KEYS || keys.includes(ALL_KEYS);
    await this.#stores.get(kind)?.reload(isWhole ? null : keys);
  }

  async reloadAll(): Promise<void> {
    for (const kind of SETTINGS_KINDS) await this.reload(kind, null);
  }
}

/** The keys to store for a change. */
export function toStoredKeys(keys: ReadonlySet<string>): readonly string[] {
  return keys.size > MAX_KEYS ? [ALL_KEYS] : [...keys];
}

/** Settings of a process that uses its database alone. */
export class LocalSettings implements SharedSettings {
  readonly isShared = false;
  readonly #database: Database;
  readonly #stores = new SettingsStores();

  constructor(database: Database) {
    this.#database = database;
  }

  register(kind: SettingsKind, store: SettingsStore): void {
    this.#stores.register(kind, store);
  }

  load(kind: SettingsKind): Promise<void> {
    return this.#stores.inOrder(() => this.#stores.reload(kind, null));
  }

  async write<T>(kind: SettingsKind, work: (tx: Queryable, changed: ReportChange) => Promise<T>): Promise<T> {
    const keys = new Set<string>();
    const result = await this.#database.transaction((tx) => work(tx, (key) => keys.add(key)));
    if (keys.size === 0) return result;
    try {
      await this.#stores.inOrder(() => this.#stores.reload(kind, [...keys]));
    } catch (error) {
      this.#readLater(1);
      // It was committed, but calls still see the old settings.
      throw new SignalboxError("write_outcome_unknown", { cause: error });
    }
    return result;
  }

  confirm(): Promise<void> {
    return Promise.resolve();
  }

  #readLater(attempt: number): void {
    setTimeout(
      () => {
        this.reloadAll().catch(() => this.#readLater(attempt + 1));
      },
      fullJitterDelay(attempt, READ_RETRY),
    ).unref();
  }

  /** Memory may differ from the database, for example after a commit whose outcome was unknown. */
  reloadAll(): Promise<void> {
    return this.#stores.inOrder(() => this.#stores.reloadAll());
  }
}
