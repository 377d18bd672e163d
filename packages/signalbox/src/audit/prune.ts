/** Applies the retention of the audit log: deletes entries from the start of each chain. The newest entry stays, because the chain continues from it. */
import type { Database } from "../database/database.ts";
import { sql } from "../core/sql.ts";

export interface Retention {
  /** Days after which entries are deleted. */
  readonly retentionDays: number;
  /** Maximum number of entries of an account. */
  readonly maxEntries: number;
}

export interface Pruned {
  readonly accountId: string;
  readonly count: number;
  /** Time of the newest deleted entry. */
  readonly until: number;
}

const DAY_MS = 86_400_000;
/** Entries of one transaction, so that other writes do not wait long. */
const STEP = 1000;
/** Steps of one run and account; the next run continues. */
const MAX_STEPS = 100;

/** Returns what was deleted, by account. */
export async function prune(database: Database, retention: Retention, now: number): Promise<Pruned[]> {
  const pruned: Pruned[] = [];
  for await (const accountId of accountsOf(database)) {
    const limit = await findLimit(database, accountId, retention, now);
    if (limit === null) continue;
    const count = await deleteBelow(database, accountId, limit.seq);
    if (count > 0) pruned.push({ accountId, count, until: limit.at });
  }
  return pruned;
}

/** One look into the index per account. `SELECT DISTINCT` would read the index of all entries. */
async function* accountsOf(database: Database): AsyncGenerator<string> {
  let row = await database.get<{ account_id: string }>(
    sql`SELECT account_id FROM audit_entry ORDER BY account_id LIMIT 1`,
  );
  while (row !== undefined) {
    yield row.account_id;
    row = await database.get<{ account_id: string }>(
      sql`SELECT account_id FROM audit_entry WHERE account_id > ${row.account_id} ORDER BY account_id LIMIT 1`,
    );
  }
}

/** Returns the newest entry to delete; null if there is none. */
async function findLimit(
  database: Database,
  accountId: string,
  { retentionDays, maxEntries }: Retention,
  now: number,
): Promise<{ seq: number; at: number } | null> {
  const newest = await database.get<{ seq: number }>(
    sql`SELECT seq FROM audit_entry WHERE account_id = ${accountId} ORDER BY seq DESC LIMIT 1`,
  );
  if (newest === undefined) return null;
  // By time: the last entry before the limit. A clock that was set back makes later entries look old, so the number decides.
  const byTime = await database.get<{ seq: number }>(
    sql`SELECT seq FROM audit_entry WHERE account_id = ${accountId} AND at < ${now - retentionDays * DAY_MS}
        ORDER BY at DESC LIMIT 1`,
  );
  const seq = Math.min(Math.max(byTime?.seq ?? 0, newest.seq - maxEntries), newest.seq - 1);
  const row = await database.get<{ seq: number; at: number }>(
    sql`SELECT seq, at FROM audit_entry WHERE account_id = ${accountId} AND seq <= ${seq} ORDER BY seq DESC LIMIT 1`,
  );
  return row ?? null;
}

async function deleteBelow(database: Database, accountId: string, seq: number): Promise<number> {
  let count = 0;
  for (let step = 0; step < MAX_STEPS; step++) {
    const oldest = await database.get<{ seq: number }>(
      sql`SELECT seq FROM audit_entry WHERE account_id = ${accountId} ORDER BY seq LIMIT 1`,
    );
    if (oldest === undefined || oldest.seq > seq) break;
    const end = Math.min(seq, oldest.seq + STEP - 1);
    const { changes } = await database.run(
      sql`DELETE FROM audit_entry WHERE account_id = ${accountId} AND seq <= ${end}`,
    );
    count += changes;
  }
  return count;
}
