/**
 * The control plane's list of instances: which exist, when each was last active, and when each must be woken next.
 *
 * Invariants:
 * 1. A new instance is in the list before any output of the instance leaves. Likewise `next_due_at` is never later than the due work
 *    that has been acknowledged. So a restart finds every instance and every due time without opening a file.
 * 2. In a cluster each due time names the node that wakes the instance. A node changes the entries of its own instances only; what a former owner
 *    still has to write is ignored, because its epoch is over.
 * 3. Writes of many instances share transactions: those that something waits for start at once, the others join them or follow a little later. A
 *    transaction has at most `ROWS_PER_TRANSACTION` of them, so that thousands do not take the event loop in one piece.
 * See docs/decisions/0021.
 */
import type { Database } from "../../database/database.ts";
import { type InstanceRef, keyOf } from "./instance-ref.ts";
import { joinSql, sql, sqlList, type SqlQuery } from "../../core/sql.ts";
import type { WorkFigures } from "./problem-index.ts";
import { applyChanges, type Change, disown, type Tenure } from "./catalog-statements.ts";

/** For writes that nothing waits for, such as the time of the last activity. */
const LAZY_FLUSH_MS = 5000;
/** Entries in one transaction: SQLite takes the event loop for some milliseconds with them. So many changes that wait are written at once. */
const ROWS_PER_TRANSACTION = 200;
/** Nothing but single deletions writes to `agent_instance` outside of this scope. All nodes write in the order of the names. */
const SCOPE = { scope: "agent_instance", isConcurrent: true };

export interface CatalogEntry extends InstanceRef {
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly nextDueAt: number | null;
  /** In a cluster, the epoch in which the due time was written; else 0. */
  readonly epoch: number;
  readonly figures: WorkFigures;
  /** Name and message of the last error of the instance's code. */
  readonly lastError: string | null;
  readonly lastErrorAt: number | null;
}

/** An instance with due work. */
export interface DueEntry extends InstanceRef {
  readonly nextDueAt: number;
}

/** The end of a page of due instances. */
export type DuePosition = Pick<DueEntry, "nextDueAt" | "account" | "name">;

/** Which due instances of an agent are read: those of one account, or those of all but some, after a position. */
export interface DueSelection {
  readonly agent: string;
  readonly account: string | null;
  readonly without: ReadonlySet<string>;
  readonly after: DuePosition | undefined;
}

export interface CatalogRow {
  readonly account_id: string;
  readonly agent: string;
  readonly name: string;
  readonly created_at: number;
  readonly last_active_at: number;
  readonly next_due_at: number | null;
  readonly epoch: number;
  readonly queued: number;
  readonly retrying: number;
  readonly dead_letters: number;
  readonly last_error: string | null;
  readonly last_error_at: number | null;
}

/** This node, in a cluster. */
export interface CatalogNode {
  /** The current incarnation. */
  readonly self: string;
  /** Undefined if this node does not own the instance: then it must not change the entry. */
  epochOf(ref: InstanceRef): number | undefined;
}

export class InstanceCatalog {
  readonly #database: Database;
  readonly #node: CatalogNode | null;
  readonly #onLazyFailure: (error: unknown) => void;
  #changes = new Map<string, Change>();
  /** The changes that the flush in progress writes. */
  #writing: ReadonlyMap<string, Change> = new Map();
  #flushing: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  /** The last write failed: the next one waits for its time. */
  #hasFailed = false;

  /** `onLazyFailure` receives errors of writes that nothing waits for; they are retried. `node` is null for a process that is alone. */
  constructor(
    database: Database,
    onLazyFailure: (error: unknown) => void = () => undefined,
    node: CatalogNode | null = null,
  ) {
    this.#database = database;
    this.#node = node;
    this.#onLazyFailure = onLazyFailure;
  }

  /** Resolves when the entry is durable. */
  register(ref: InstanceRef, now: number): Promise<void> {
    const change = this.#ownChange(ref);
    if (change === null) return Promise.resolve();
    Object.assign(change, { createdAt: now, lastActiveAt: now });
    return this.flush();
  }

  /** The epoch of this node for the instance; 0 for a process that is alone. */
  epochOf(ref: InstanceRef): number {
    return this.#node?.epochOf(ref) ?? 0;
  }

  /** Resolves when the due time is durable. */
  setDue(ref: InstanceRef, at: number | null): Promise<void> {
    const change = this.#ownChange(ref);
    if (change === null) return Promise.resolve();
    change.nextDueAt = at;
    return this.flush();
  }

  /** Written within `LAZY_FLUSH_MS`. A crash before that leaves an earlier time, which causes a needless wake. */
  setDueLazily(ref: InstanceRef, at: number | null): void {
    const change = this.#ownChange(ref);
    if (change === null) return;
    change.nextDueAt = at;
    this.#flushSoon();
  }

  touch(ref: InstanceRef, now: number): void {
    this.#change(ref).lastActiveAt = now;
    this.#flushSoon();
  }

  /** No node wakes the instances any more, until another one takes them: this node gives them up. */
  async disown(refs: readonly InstanceRef[]): Promise<void> {
    await this.flush();
    const owned = refs.map((ref) => ({ ref, epoch: this.epochOf(ref) }));
    await this.#database.transaction((tx) => disown(tx, owned), SCOPE);
  }

  /** `createdAt`: an entry that was created later stays. */
  async remove(ref: InstanceRef, createdAt?: number): Promise<void> {
    this.#changes.delete(keyOf(ref));
    await this.#flushing;
    const ofTime = createdAt === undefined ? sql`` : sql`AND created_at <= ${createdAt}`;
    await this.#database.run(
      sql`DELETE FROM agent_instance
          WHERE account_id = ${ref.account} AND agent = ${ref.agent} AND name = ${ref.name} ${ofTime}`,
    );
  }

  /** The entry including all changes before the call, written or not. */
  async find(ref: InstanceRef): Promise<CatalogEntry | undefined> {
    const key = keyOf(ref);
    // Read before the table, because a flush may end in the meantime. If a pending change removes a due time that the table still has, an
    // instance that saw only the table would not write the same due time again, and its work would not be woken.
    const pending = { ...this.#writing.get(key), ...this.#changes.get(key) };
    const row = await this.#database.get<CatalogRow>(
      sql`SELECT * FROM agent_instance WHERE account_id = ${ref.account} AND agent = ${ref.agent} AND name = ${ref.name}`,
    );
    if (row === undefined) return undefined;
    const entry = fromRow(row);
    return {
      ...entry,
      lastActiveAt: pending.lastActiveAt ?? entry.lastActiveAt,
      nextDueAt: pending.nextDueAt === undefined ? entry.nextDueAt : pending.nextDueAt,
      epoch: pending.nextDueAt === undefined ? entry.epoch : (pending.tenure?.epoch ?? 0),
    };
  }

  /** The entries of the given names that exist, by name. */
  async findMany(account: string, agent: string, names: readonly string[]): Promise<CatalogEntry[]> {
    if (names.length === 0) return [];
    const rows = await this.#database.scan<CatalogRow>(
      sql`SELECT * FROM agent_instance WHERE account_id = ${account} AND agent = ${agent} AND name IN (${sqlList(names)}) ORDER BY name`,
      { account, kind: "search" },
    );
    return rows.map(fromRow);
  }

  async count(account: string, agent: string): Promise<number> {
    const [row] = await this.#database.scan<{ n: number }>(
      sql`SELECT count(*) AS n FROM agent_instance WHERE account_id = ${account} AND agent = ${agent}`,
      { account, kind: "search" },
    );
    return row?.n ?? 0;
  }

  /**
   * The instances of an agent that are due by `now`: earliest first. One agent at a time, because the work of agents that are not loaded must not be
   * read with every scan. In a cluster: those that this node wakes.
   */
  async due(selection: DueSelection, now: number, limit: number): Promise<readonly DueEntry[]> {
    return this.#due(this.#ofNode(), selection, now, limit);
  }

  /** Like `due`: those whose node is none of the given ones, which are the living nodes. */
  async orphans(
    living: readonly string[],
    selection: DueSelection,
    now: number,
    limit: number,
  ): Promise<readonly DueEntry[]> {
    const nodes = living.map((inc) => BigInt(inc)).toSorted((a, b) => (a < b ? -1 : 1));
    // As ranges, so that the rows of living nodes are not even read.
    const ranges: SqlQuery[] = nodes.map((node, i) => {
      const before = nodes[i - 1];
      return before === undefined ? sql`node < ${node}` : sql`(node > ${before} AND node < ${node})`;
    });
    const last = nodes.at(-1);
    if (last !== undefined) ranges.push(sql`node > ${last}`);
    const isOrphan = ranges.length === 0 ? sql`node IS NOT NULL` : sql`(${joinSql(ranges, " OR ")})`;
    return this.#due(sql`AND node IS NOT NULL AND ${isOrphan}`, selection, now, limit);
  }

  #ofNode(): SqlQuery {
    return this.#node === null ? sql`` : sql`AND node IS NOT NULL AND node = ${BigInt(this.#node.self)}`;
  }

  async #due(
    ofNode: SqlQuery,
    { agent, account, without, after }: DueSelection,
    now: number,
    limit: number,
  ): Promise<readonly DueEntry[]> {
    // In `coalesce`, so that the rows are read in the order of the index by due time: SQLite would read all instances of the account, and PostgreSQL expects
    // half of the rows to match, and not next to none.
    const ofAccount =
      account !== null
        ? sql`AND coalesce(account_id = ${account}, false)`
        : without.size === 0
          ? sql``
          : sql`AND coalesce(account_id NOT IN (${sqlList([...without])}), false)`;
    const position =
      after === undefined
        ? sql``
        : sql`AND (next_due_at, account_id, name) > (${after.nextDueAt}, ${after.account}, ${after.name})`;
    const rows = await this.#database.all<CatalogRow & { readonly next_due_at: number }>(
      sql`SELECT account_id, agent, name, next_due_at FROM agent_instance
          WHERE agent = ${agent} ${ofNode} ${ofAccount} AND next_due_at <= ${now} ${position}
          ORDER BY next_due_at, account_id, name LIMIT ${limit}`,
    );
    return rows.map((row) => ({
      account: row.account_id,
      agent: row.agent,
      name: row.name,
      nextDueAt: row.next_due_at,
    }));
  }

  /** The first due time of an agent's instances after `now`; null for none. */
  async nextDueAfter(agent: string, now: number): Promise<number | null> {
    const row = await this.#database.get<{ at: number | null }>(
      sql`SELECT min(next_due_at) AS at FROM agent_instance
          WHERE agent = ${agent} ${this.#ofNode()} AND next_due_at > ${now}`,
    );
    return row?.at ?? null;
  }

  /** Resolves when all changes before the call are durable. */
  flush(): Promise<void> {
    if (this.#flushing === null) return this.#start();
    this.#next ??= this.#flushing.then(() => this.#start());
    return this.#next;
  }

  async close(): Promise<void> {
    await this.flush();
    clearTimeout(this.#timer);
  }

  #start(): Promise<void> {
    this.#next = null;
    if (this.#changes.size === 0) return Promise.resolve();
    const changes = [...this.#changes.values()];
    this.#writing = this.#changes;
    this.#changes = new Map();
    const flushing = this.#write(changes).finally(() => {
      if (this.#flushing !== flushing) return;
      this.#flushing = null;
      this.#writing = new Map();
    });
    this.#flushing = flushing;
    return flushing;
  }

  async #write(changes: readonly Change[]): Promise<void> {
    for (let i = 0; i < changes.length; i += ROWS_PER_TRANSACTION) {
      const some = changes.slice(i, i + ROWS_PER_TRANSACTION);
      try {
        await this.#database.transaction((tx) => applyChanges(tx, some), SCOPE);
        this.#hasFailed = false;
      } catch (error) {
        this.#hasFailed = true;
        this.#restore(changes.slice(i));
        throw error;
      }
    }
  }

  /** Keeps changes that could not be written for the next flush; newer changes take precedence. */
  #restore(changes: readonly Change[]): void {
    for (const change of changes) {
      const newer = this.#changes.get(keyOf(change.ref));
      // What a change of a later epoch does not have is not known.
      if (newer?.tenure !== undefined && newer.tenure.epoch !== change.tenure?.epoch) continue;
      this.#changes.set(keyOf(change.ref), { ...change, ...newer });
    }
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#changes.size >= ROWS_PER_TRANSACTION && this.#next === null && !this.#hasFailed) {
      this.flush().catch(this.#onLazyFailure);
      return;
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush().catch(this.#onLazyFailure);
    }, LAZY_FLUSH_MS).unref();
  }

  /** Null if this node does not own the instance any more. */
  #ownChange(ref: InstanceRef): Change | null {
    if (this.#node === null) return this.#change(ref);
    const epoch = this.#node.epochOf(ref);
    if (epoch === undefined) return null;
    const change = this.#change(ref);
    const tenure: Tenure = { node: this.#node.self, epoch };
    // What was recorded in an earlier epoch is out of date.
    if (change.tenure?.epoch !== epoch) {
      delete change.createdAt;
      delete change.nextDueAt;
    }
    change.tenure = tenure;
    return change;
  }

  #change(ref: InstanceRef): Change {
    const key = keyOf(ref);
    let change = this.#changes.get(key);
    if (change === undefined) {
      change = { ref };
      this.#changes.set(key, change);
    }
    return change;
  }
}

export function fromRow(row: CatalogRow): CatalogEntry {
  return {
    account: row.account_id,
    agent: row.agent,
    name: row.name,
    createdAt: row.created_at,
    lastActiveAt: row.last_active_at,
    nextDueAt: row.next_due_at,
    epoch: row.epoch,
    figures: { queued: row.queued, retrying: row.retrying, deadLetters: row.dead_letters },
    lastError: row.last_error,
    lastErrorAt: row.last_error_at,
  };
}
