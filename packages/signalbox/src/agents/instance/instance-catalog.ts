/**
 * The control plane's list of known instances: what exists, when it was last active, and when it must be woken next.
 *
 * Invariants:
 * 1. A new instance is in the list before anything it did is acknowledged; likewise `next_due_at` is never later than what is really
 *    due, once that is acknowledged. So a restart finds every instance and every timer without opening a single file.
 * 2. Writes of many instances share transactions: those that something waits for go at once, the others with them or a little later.
 */
import type { Database, Queryable } from "../../database/database.ts";
import type { InstanceRef } from "./instance-ref.ts";
import { joinSql, sql, sqlList, type SqlQuery } from "../../core/sql.ts";
import { keyOf } from "./instance-key.ts";

/** Last activity is for people; writing it late is fine. */
const LAZY_FLUSH_MS = 5000;
/** Nothing else writes to `agent_instance` but single deletions. */
const SCOPE = { scope: "agent_instance" };

export interface CatalogEntry extends InstanceRef {
  readonly createdAt: number;
  readonly lastActiveAt: number;
  readonly nextDueAt: number | null;
}

/** An instance with due work. */
export interface DueEntry extends InstanceRef {
  readonly nextDueAt: number;
}

/** Where a page of due instances ended. */
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
  /** Those that the flush under way writes. */
  #writing: ReadonlyMap<string, Change> = new Map();
  #flushing: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** `onLazyFailure` learns of failed writes that nobody waits for; they are tried again. */
  constructor(database: Database, onLazyFailure: (error: unknown) => void = () => undefined) {
    this.#database = database;
    this.#onLazyFailure = onLazyFailure;
  }

  /** Resolves when the instance is durably listed. */
  register(ref: InstanceRef, now: number): Promise<void> {
    Object.assign(this.#change(ref), { createdAt: now, lastActiveAt: now });
    return this.flush();
  }

  /** Resolves when it is durable. */
  setDue(ref: InstanceRef, at: number | null): Promise<void> {
    this.#change(ref).nextDueAt = at;
    return this.flush();
  }

  /** Written soon; a crash before that leaves an earlier time, which wakes the instance for nothing. */
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

  /** As it will be when everything that changed before the call is written. */
  async find(ref: InstanceRef): Promise<CatalogEntry | undefined> {
    const key = keyOf(ref);
    // Taken before the table is read: a flush may end meanwhile. An instance that believed the table alone would not write a due time that the
    // table still has, and that a change on its way takes away.
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

  /** An account's instances of an agent, in order of name, after the name `after`; `search` is a part of the name, in any case. */
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

  /** Those of the names that exist, in order. */
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
   * Those of an agent, of all accounts, that are due by `now`: longest first, after `after`. Of one agent, since work of an agent whose module
   * is not loaded waits, and must not be read again and again meanwhile.
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

  /** The first due time of an agent's instances after `now`; null when nothing is scheduled. */
  async nextDueAfter(agent: string, now: number): Promise<number | null> {
    const row = await this.#database.get<{ at: number | null }>(
      sql`SELECT min(next_due_at) AS at FROM agent_instance WHERE agent = ${agent} AND next_due_at > ${now}`,
    );
    return row?.at ?? null;
  }

  /** Resolves when everything changed before the call is durable. */
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
      .transaction(async (tx) => {
        for (const change of changes) await apply(tx, change);
      }, SCOPE)
      .catch((error: unknown) => {
        this.#putBack(changes);
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

  /** What could not be written is written with the next flush, less what has changed again meanwhile. */
  #putBack(changes: readonly Change[]): void {
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

async function apply(tx: Queryable, { ref, createdAt, lastActiveAt, nextDueAt }: Change): Promise<void> {
  if (createdAt !== undefined) {
    const { changes } = await tx.run(
      sql`INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at)
          VALUES (${ref.account}, ${ref.agent}, ${ref.name}, ${createdAt}, ${lastActiveAt ?? createdAt}, ${nextDueAt ?? null})
          ON CONFLICT (account_id, agent, name) DO NOTHING`,
    );
    if (changes === 1) return;
    // It was listed meanwhile; what else has changed counts all the same.
  }
  const settings: SqlQuery[] = [];
  if (lastActiveAt !== undefined) settings.push(sql`last_active_at = ${lastActiveAt}`);
  if (nextDueAt !== undefined) settings.push(sql`next_due_at = ${nextDueAt}`);
  await tx.run(
    sql`UPDATE agent_instance SET ${joinSql(settings, ", ")}
        WHERE account_id = ${ref.account} AND agent = ${ref.agent} AND name = ${ref.name}`,
  );
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
