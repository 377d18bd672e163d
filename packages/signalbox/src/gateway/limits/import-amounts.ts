/**
 * Moves amounts that an earlier version had stored into the rows that nodes share: those of `limit_amount`, and those of the journal in the data
 * folder that the database does not have.
 */
import { existsSync, rmSync } from "node:fs";
import { sql } from "../../core/sql.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { type AmountRow, fromAmountRow } from "./amount-row.ts";
import { type FoundAmount, SpendJournal } from "./spend-journal.ts";

export async function importAmounts(database: Database, journalFolder: string, now: number): Promise<void> {
  const hasJournal = existsSync(journalFolder);
  const hasRows = (await database.get(sql`SELECT 1 AS one FROM limit_amount LIMIT 1`)) !== undefined;
  if (!hasJournal && !hasRows) return;
  await database.transaction(
    async (tx) => {
      const rows = await tx.all<AmountRow>(sql`SELECT * FROM limit_amount WHERE ends_at > ${now}`);
      const found = hasJournal ? await readJournal(tx, journalFolder) : [];
      for (const { accountId, owner, bucket, slot, end, amount } of [...rows.map(fromAmountRow), ...found]) {
        if (end > now) await add(tx, { accountId, owner, bucket, slot, end, amount });
      }
      await tx.run(sql`DELETE FROM limit_amount`);
    },
    { scope: "limits" },
  );
  rmSync(journalFolder, { recursive: true, force: true });
}

/** Its end is marked in the same transaction, so that it is not read twice. */
async function readJournal(tx: Queryable, folder: string): Promise<FoundAmount[]> {
  const journal = new SpendJournal({ folder, newId: "", onError: () => undefined });
  const id = journal.readId();
  if (id === null) return [];
  const row = await tx.get<{ readonly sequence: number; readonly position: number }>(
    sql`SELECT sequence, position FROM limit_journal WHERE id = ${id}`,
  );
  await tx.run(
    sql`INSERT INTO limit_journal (id, sequence, position) VALUES (${id}, ${Number.MAX_SAFE_INTEGER}, 0)
        ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, position = excluded.position`,
  );
  return journal.recover(row === undefined ? null : { sequence: row.sequence, byte: row.position });
}

/** The window is not known here: the first use of the row converts it. */
async function add(
  tx: Queryable,
  { accountId, owner, bucket, slot, end, amount }: FoundAmount,
): Promise<void> {
  await tx.run(
    sql`INSERT INTO limit_share (account_id, owner, bucket, kind, window_key, last_slot, ends_at, used)
        VALUES (${accountId}, ${owner}, ${`cost ${bucket}`}, 'cost', '', ${slot}, ${end},
          jsonb_build_object(${String(slot)}::text, ${amount}::bigint))
        ON CONFLICT (account_id, owner, bucket) DO UPDATE SET ends_at = greatest(limit_share.ends_at, excluded.ends_at),
          used = limit_share.used || jsonb_build_object(${String(slot)}::text,
            coalesce((limit_share.used ->> ${String(slot)}::text)::bigint, 0) + ${amount}::bigint)`,
  );
}
