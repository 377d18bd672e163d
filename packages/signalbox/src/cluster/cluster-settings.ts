/**
 * Settings shared by the nodes of a cluster. The database has one version for all settings, and a row for each changed key.
 *
 *   write: transaction { work, version + 1, keys } → read the keys here → every living node reads them → answer
 *
 * Invariants, in addition to those of `SharedSettings`:
 * 1. Versions are committed in order, because each transaction locks the row of the version. Rows that are read after a version was seen are at
 *    least as new as the version.
 * 2. The nodes that must read a change are those that are alive in the database *after* the commit. A node that joins later reads everything
 *    later than the commit.
 * 3. A lost message costs no correctness: a node is told again until it answers or is declared dead, and each heartbeat returns the version.
 * 4. A write that changes nothing, or is refused by what it finds, is also answered when every living node has read what it has seen: the node that
 *    wrote that may have died before it told the others. So a repeated revocation that finds no row any more is as good as the first.
 * 5. A node answers requests from memory only under a lease (`lease.ts`), which a heartbeat renews if memory has the version that it returned.
 */
import { SignalboxError } from "@signalbox/protocol";
import { awakeSignal } from "../core/awake-time.ts";
import { sql, joinSql } from "../core/sql.ts";
import type { Database, Queryable } from "../database/database.ts";
import {
  type ReportChange,
  SETTINGS_KINDS,
  type SettingsKind,
  type SettingsStore,
  SettingsStores,
  type SharedSettings,
  toStoredKeys,
} from "../database/shared-settings.ts";
import { ACKNOWLEDGED, type ClusterNode } from "./cluster-node.ts";

export interface ClusterSettingsParts {
  readonly cluster: ClusterNode;
  /** Setting `cluster.deadAfterMs`. */
  readonly deadAfterMs: number;
  readonly onError: (error: unknown) => void;
}

const CALL = "settings";
/** All writes of settings are serialised over all nodes. */
const SCOPE = "settings";
/** Time for the other nodes, besides what it takes to declare one dead. */
const TELL_MS = 7500;
/** A node that is further behind reads everything. */
const KEPT_VERSIONS = 10_000;

export class ClusterSettings implements SharedSettings {
  readonly isShared = true;
  readonly #parts: ClusterSettingsParts;
  readonly #stores = new SettingsStores();
  #database: Database | null = null;
  /** Memory has all changes up to this version. Null: nothing was read yet, or everything must be read again. */
  #version: number | null = null;
  /** All living nodes are known to have this version, and those that join later have it, too. */
  #published = -1;
  #invalidations = 0;
  #catchingUp: Promise<"changes" | "everything"> | null = null;

  constructor(parts: ClusterSettingsParts) {
    this.#parts = parts;
    parts.cluster.serve(CALL, async (payload) => {
      // Before `open` nothing is in memory: everything is read later than this change.
      if (this.#database !== null) await this.#reach(Number(payload.toString()));
      return ACKNOWLEDGED;
    });
  }

  /** Called once, when the tables exist and before anything is loaded. */
  async open(database: Database): Promise<void> {
    this.#version = await readVersion(database);
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
    try {
      const { result, version } = await this.#opened().transaction(
        async (tx) => {
          const done = await work(tx, (key) => keys.add(key));
          return {
            result: done,
            version: keys.size === 0 ? null : await recordChange(tx, kind, toStoredKeys(keys)),
          };
        },
        { scope: SCOPE },
      );
      await (version === null ? this.confirm() : this.#publish(version));
      return result;
    } catch (error) {
      // It was refused by what it has read. A failure of the database tells nothing about the settings.
      if (error instanceof SignalboxError && error.status < 500) await this.confirm();
      throw error;
    }
  }

  async confirm(): Promise<void> {
    const version = await readVersion(this.#opened());
    // In most cases all nodes have it already.
    if (version > this.#published) await this.#publish(version);
  }

  /** A heartbeat returned the version. Calls `onReached` when memory has it. */
  onVersion(version: number, onReached: () => void): void {
    if (this.#database === null) return;
    // Memory may be newer: a message can overtake the answer to a heartbeat.
    if (this.#version !== null && version <= this.#version) {
      onReached();
      return;
    }
    this.#reach(version).then(onReached, (error: unknown) => this.#parts.onError(error));
  }

  /**
   * Memory may differ from the database: this node was declared dead, another server took over, or the outcome of a commit is unknown. The next
   * heartbeat reads everything.
   */
  invalidate(): void {
    this.#version = null;
    this.#published = -1;
    this.#invalidations += 1;
  }

  /** After the commit, so a failure is no failure of the write. */
  async #publish(version: number): Promise<void> {
    try {
      await this.#reach(version);
      const signal = awakeSignal(this.#parts.deadAfterMs + TELL_MS);
      const invalidations = this.#invalidations;
      await this.#parts.cluster.tellAll(CALL, Buffer.from(String(version)), signal);
      if (this.#invalidations === invalidations) this.#published = Math.max(this.#published, version);
    } catch (error) {
      throw new SignalboxError("write_outcome_unknown", { cause: error });
    }
  }

  /** Resolves when memory has all changes up to the version. */
  async #reach(version: number): Promise<void> {
    while (this.#version === null || this.#version < version) {
      // A read that has begun already may lack the version.
      const isNew = this.#catchingUp === null;
      this.#catchingUp ??= this.#stores
        .inOrder(() => this.#catchUp())
        .finally(() => (this.#catchingUp = null));
      // A server that has lost commits never reaches the version again.
      if ((await this.#catchingUp) === "everything" && isNew && this.#version !== null) return;
    }
  }

  async #catchUp(): Promise<"changes" | "everything"> {
    const database = this.#opened();
    const invalidations = this.#invalidations;
    const changes = this.#version === null ? null : await readChanges(database, this.#version);
    // Before the rows: they are then at least as new.
    const version = changes?.at(-1)?.version ?? (await readVersion(database));
    if (changes === null) await this.#stores.reloadAll();
    else await this.#reload(changes);
    if (this.#invalidations === invalidations) this.#version = version;
    return changes === null ? "everything" : "changes";
  }

  async #reload(changes: readonly ChangeRow[]): Promise<void> {
    for (const kind of SETTINGS_KINDS) {
      const keys = new Set(changes.filter((change) => change.kind === kind).map(({ key }) => key));
      if (keys.size > 0) await this.#stores.reload(kind, [...keys]);
    }
  }

  #opened(): Database {
    if (this.#database === null) throw new Error("settings are used before they were opened");
    return this.#database;
  }
}

interface ChangeRow {
  readonly version: number;
  readonly kind: string;
  readonly key: string;
}

/** Returns the new version. The row of the version is locked until the commit. */
async function recordChange(tx: Queryable, kind: SettingsKind, keys: readonly string[]): Promise<number> {
  const row = await tx.get<{ version: number }>(
    sql`UPDATE signalbox_settings SET version = version + 1 RETURNING version`,
  );
  if (row === undefined) throw new Error("the version of the settings is missing");
  const { version } = row;
  const values = keys.map((key) => sql`(${version}, ${kind}, ${key})`);
  await tx.run(
    sql`INSERT INTO signalbox_settings_change (version, kind, key) VALUES ${joinSql(values, ", ")}`,
  );
  if (version % KEPT_VERSIONS === 0) {
    await tx.run(sql`DELETE FROM signalbox_settings_change WHERE version <= ${version - KEPT_VERSIONS}`);
  }
  return version;
}

async function readVersion(database: Database): Promise<number> {
  const row = await database.get<{ version: number }>(sql`SELECT version FROM signalbox_settings`);
  if (row === undefined) throw new Error("the version of the settings is missing");
  return row.version;
}

/** Null if the changes after the version are not kept any more. */
async function readChanges(database: Database, after: number): Promise<readonly ChangeRow[] | null> {
  const rows = await database.all<ChangeRow>(
    sql`SELECT version, kind, key FROM signalbox_settings_change WHERE version > ${after} ORDER BY version`,
  );
  return rows[0]?.version === after + 1 ? rows : null;
}
