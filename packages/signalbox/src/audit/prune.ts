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
    const one = await pruneAccount(database, accountId, retention, now);
    if (one.count > 0) pruned.push(one);
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

/**
 * Deletes from the start of the chain and stops at the first entry that stays. An entry behind it may look old, because the clock of its process was
 * wrong; it and the entries between stay as well.
 */
async function pruneAccount(
  database: Database,
  accountId: string,
  { retentionDays, maxEntries }: Retention,
  now: number,
): Promise<Pruned> {
  const own = sql`account_id = ${accountId}`;
  const newest = await database.get<Place>(
    sql`SELECT seq, at FROM audit_entry WHERE ${own} ORDER BY seq DESC LIMIT 1`,
  );
  const lastSeq = newest?.seq ?? 0;
  const oldestTime = now - retentionDays * DAY_MS;
  const goes = ({ seq, at }: Place) => seq < lastSeq && (seq <= lastSeq - maxEntries || at < oldestTime);
  let count = 0;
  let until = 0;
  for (let step = 0; step < MAX_STEPS; step++) {
    // Mostly there is nothing to delete, and one row tells.
    const rows = await database.all<Place>(
      sql`SELECT seq, at FROM audit_entry WHERE ${own} ORDER BY seq LIMIT ${step === 0 ? 1 : STEP}`,
    );
    const kept = rows.findIndex((row) => !goes(row));
    const last = kept === -1 ? rows.at(-1) : rows[kept - 1];
    if (last === undefined) break;
    const { changes } = await database.run(sql`DELETE FROM audit_entry WHERE ${own} AND seq <= ${last.seq}`);
    count += changes;
    until = last.at;
    if (kept !== -1) break;
  }
  return { accountId, count, until };
}

interface Place {
  readonly seq: number;
  readonly at: number;
}
