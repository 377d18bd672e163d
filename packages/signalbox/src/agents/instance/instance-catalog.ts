/**
 * The control plane's list of instances: which exist, when each was last active, and when each must be woken next.
 *
 * Invariants:
 * 1. A new instance is in the list before any output of the instance leaves. Likewise `next_due_at` is never later than the due work
 *    that has been acknowledged. So a restart finds every instance and every due time without opening a file.
 * 2. Writes of many instances share transactions: those that something waits for start at once, the others join them or follow a little later.
 * See docs/decisions/0021.
 */
import type { Database, Queryable } from "../../database/database.ts";
import { type InstanceRef, keyOf } from "./instance-ref.ts";
import { RowsStatement } from "../../core/rows-statement.ts";
import { joinSql, sql, sqlList, type SqlQuery, type SqlValue } from "../../core/sql.ts";

/** For writes that nothing waits for, such as the time of the last activity. */
const LAZY_FLUSH_MS = 5000;
/** Nothing but single deletions writes to `agent_instance` outside of this scope. All nodes write in the order of the names. */
const SCOPE = { scope: "agent_instance", isConcurrent: true };

const COLUMNS = "account_id, agent, name, created_at, last_active_at, next_due_at";
const ADD = new RowsStatement(
  `INSERT INTO agent_instance (${COLUMNS}) VALUES `,
  6,
  " ON CONFLICT (account_id, agent, name) DO UPDATE SET last_active_at = excluded.last_active_at",
);
const ADD_WITH_DUE = new RowsStatement(
  `INSERT INTO agent_instance (${COLUMNS}) VALUES `,
  6,
  ` ON CONFLICT (account_id, agent, name)
    DO UPDATE SET last_active_at = excluded.last_active_at, next_due_at = excluded.next_due_at`,
);
const SET_ACTIVE = updateOf("last_active_at");
const SET_DUE = updateOf("next_due_at");

export interface CatalogEntry extends InstanceRef {
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly nextDueAt: number | null;
}

/** An instance with due work. */
export interface DueEntry extends InstanceRef {
  readonly nextDueAt: number;
}

/** The end of a page of due instances. */
export type DuePosition = Pick<DueEntry, "nextDueAt" | "account" | "name">;

interface Row {
  readonly account_id: string;
  readonly agent: string;
  readonly name: string;
  readonly created_at: number;
  readonly last_active_at: number;
  readonly next_due_at: number | null;
}

interface Change {
  readonly ref: InstanceRef;
  createdAt?: number;
  lastActiveAt?: number;
  nextDueAt?: number | null;
}

export class InstanceCatalog {
  readonly #database: Database;
  readonly #onLazyFailure: (error: unknown) => void;
  #changes = new Map<string, Change>();
  /** The changes that the flush in progress writes. */
  #writing: ReadonlyMap<string, Change> = new Map();
  #flushing: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** `onLazyFailure` receives errors of writes that nothing waits for; they are retried. */
  constructor(database: Database, onLazyFailure: (error: unknown) => void = () => undefined) {
    this.#database = database;
    this.#onLazyFailure = onLazyFailure;
  }

  /** Resolves when the entry is durable. */
  register(ref: InstanceRef, now: number): Promise<void> {
    Object.assign(this.#change(ref), { createdAt: now, lastActiveAt: now });
    return this.flush();
  }

  /** Resolves when the due time is durable. */
  setDue(ref: InstanceRef, at: number | null): Promise<void> {
    this.#change(ref).nextDueAt = at;
    return this.flush();
  }

  /** Written within `LAZY_FLUSH_MS`. A crash before that leaves an earlier time, which causes a needless wake. */
  setDueLazily(ref: InstanceRef, at: number | null): void {
    this.#change(ref).nextDueAt = at;
    this.#flushSoon();
  }

  touch(ref: InstanceRef, now: number): void {
    this.#change(ref).lastActiveAt = now;
    this.#flushSoon();
  }

  async remove(ref: InstanceRef): Promise<void> {
    this.#changes.delete(keyOf(ref));
    await this.#flushing;
    await this.#database.run(
      sql`DELETE FROM agent_instance WHERE account_id = ${ref.account} AND agent = ${ref.agent} AND name = ${ref.name}`,
    );
  }

  /** The entry including all changes before the call, written or not. */
  async find(ref: InstanceRef): Promise<CatalogEntry | undefined> {
    const key = keyOf(ref);
    // Read before the table, because a flush may end in the meantime. If a pending change removes a due time that the table still has, an
    // instance that saw only the table would not write the same due time again, and its work would not be woken.
    const pending = { ...this.#writing.get(key), ...this.#changes.get(key) };
    const row = await this.#database.get<Row>(
      sql`SELECT * FROM agent_instance WHERE account_id = ${ref.account} AND agent = ${ref.agent} AND name = ${ref.name}`,
    );
    if (row === undefined) return undefined;
    const entry = fromRow(row);
    return {
      ...entry,
      lastActiveAt: pending.lastActiveAt ?? entry.lastActiveAt,
      nextDueAt: pending.nextDueAt === undefined ? entry.nextDueAt : pending.nextDueAt,
    };
  }

  /** An account's instances of an agent by name, after the name `after`; `search` is a part of the name, case-insensitive. */
  async list(
    account: string,
    agent: string,
    options: { search?: string | undefined; after?: string | undefined; limit: number },
  ): Promise<CatalogEntry[]> {
    const conditions: SqlQuery[] = [sql`account_id = ${account}`, sql`agent = ${agent}`];
    if (options.after !== undefined) conditions.push(sql`name > ${options.after}`);
    if (options.search !== undefined) {
      const pattern = `%${options.search.toLowerCase().replaceAll(/[\\%_]/g, "\\$&")}%`;
      conditions.push(sql`lower(name) LIKE ${pattern} ESCAPE '\\'`);
    }
    const rows = await this.#database.all<Row>(
      sql`SELECT * FROM agent_instance WHERE ${joinSql(conditions, " AND ")} ORDER BY name LIMIT ${options.limit}`,
    );
    return rows.map(fromRow);
  }

  /** The entries of the given names that exist, by name. */
  async findMany(account: string, agent: string, names: readonly string[]): Promise<CatalogEntry[]> {
    if (names.length === 0) return [];
    const rows = await this.#database.all<Row>(
      sql`SELECT * FROM agent_instance WHERE account_id = ${account} AND agent = ${agent} AND name IN (${sqlList(names)}) ORDER BY name`,
    );
    return rows.map(fromRow);
  }

  async count(account: string, agent: string): Promise<number> {
    const row = await this.#database.get<{ n: number }>(
      sql`SELECT count(*) AS n FROM agent_instance WHERE account_id = ${account} AND agent = ${agent}`,
    );
    return row?.n ?? 0;
  }

  /**
   * The instances of an agent, of all accounts, that are due by `now`: earliest first, after `after`. One agent at a time, because the work of
   * agents that are not loaded must not be read with every scan.
   */
  async due(
    agent: string,
    now: number,
    after: DuePosition | undefined,
    limit: number,
  ): Promise<readonly DueEntry[]> {
    const position =
      after === undefined
        ? sql``
        : sql`AND (next_due_at, account_id, name) > (${after.nextDueAt}, ${after.account}, ${after.name})`;
    const rows = await this.#database.all<Row & { readonly next_due_at: number }>(
      sql`SELECT account_id, agent, name, next_due_at FROM agent_instance
          WHERE agent = ${agent} AND next_due_at <= ${now} ${position}
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
      sql`SELECT min(next_due_at) AS at FROM agent_instance WHERE agent = ${agent} AND next_due_at > ${now}`,
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
    const flushing = this.#database
      .transaction((tx) => apply(tx, changes), SCOPE)
      .catch((error: unknown) => {
        this.#restore(changes);
        throw error;
      })
      .finally(() => {
        if (this.#flushing !== flushing) return;
        this.#flushing = null;
        this.#writing = new Map();
      });
    this.#flushing = flushing;
    return flushing;
  }

  /** Keeps changes that could not be written for the next flush; newer changes take precedence. */
  #restore(changes: readonly Change[]): void {
    for (const change of changes) {
      const newer = this.#changes.get(keyOf(change.ref));
      this.#changes.set(keyOf(change.ref), { ...change, ...newer });
    }
    this.#flushSoon();
  }

  #flushSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.flush().catch(this.#onLazyFailure);
    }, LAZY_FLUSH_MS).unref();
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

/** A few statements for all changes: each is a round trip to PostgreSQL. */
async function apply(tx: Queryable, changes: readonly Change[]): Promise<void> {
  const added: SqlValue[] = [];
  const addedWithDue: SqlValue[] = [];
  const active: SqlValue[] = [];
  const due: SqlValue[] = [];
  for (const { ref, createdAt, lastActiveAt, nextDueAt } of changes.toSorted(compareRefs)) {
    const key = [ref.account, ref.agent, ref.name];
    if (createdAt !== undefined) {
      const rows = nextDueAt === undefined ? added : addedWithDue;
      rows.push(...key, createdAt, lastActiveAt ?? createdAt, nextDueAt ?? null);
      continue;
    }
    if (lastActiveAt !== undefined) active.push(...key, lastActiveAt);
    if (nextDueAt !== undefined) due.push(...key, nextDueAt);
  }
  await ADD.run(tx, added);
  await ADD_WITH_DUE.run(tx, addedWithDue);
  await SET_ACTIVE.run(tx, active);
  await SET_DUE.run(tx, due);
}

/** Sets one column of several instances; instances without an entry are left alone. The rows of `VALUES` have columns of these names. */
function updateOf(column: string): RowsStatement {
  return new RowsStatement(
    `UPDATE agent_instance SET ${column} = CAST(v.column4 AS BIGINT) FROM (VALUES `,
    4,
    ") AS v WHERE account_id = v.column1 AND agent = v.column2 AND name = v.column3",
  );
}

function compareRefs(a: Change, b: Change): number {
  const [first, second] = [keyOf(a.ref), keyOf(b.ref)];
  return first < second ? -1 : first > second ? 1 : 0;
}

function fromRow(row: Row): CatalogEntry {
  return {
    account: row.account_id,
    agent: row.agent,
    name: row.name,
    createdAt: row.created_at,
    lastActiveAt: row.last_active_at,
    nextDueAt: row.next_due_at,
  };
}
