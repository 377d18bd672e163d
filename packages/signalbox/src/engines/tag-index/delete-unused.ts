/** Deletes unused keys and values from the dictionary, which would otherwise keep every value that was ever used. */
import type { Queryable } from "../../core/queryable.ts";
import { sql } from "../../core/sql.ts";
import { findKey, findValue } from "./dictionary.ts";

/** Deletes those of `tags` that no resource has. The caller holds the lock of the account. */
export async function deleteUnusedTags(
  tx: Queryable,
  accountNo: number,
  tags: readonly (readonly [string, string])[],
): Promise<void> {
  const valuesByKey = new Map<string, Set<string>>();
  for (const [key, value] of tags) {
    const values = valuesByKey.get(key);
    if (values === undefined) valuesByKey.set(key, new Set([value]));
    else values.add(value);
  }
  for (const [key, values] of valuesByKey) {
    const keyRow = await findKey(tx, accountNo, key);
    if (keyRow === undefined) continue;
    for (const value of values) {
      const row = await findValue(tx, accountNo, keyRow.key_no, value);
      if (row?.uses === 0) await deleteValue(tx, accountNo, keyRow.key_no, row.value_no);
    }
    await tx.run(
      sql`DELETE FROM tag_key WHERE account_no = ${accountNo} AND key_no = ${keyRow.key_no} AND uses = 0
          AND NOT EXISTS (SELECT 1 FROM tag_value v WHERE v.account_no = ${accountNo} AND v.key_no = ${keyRow.key_no})`,
    );
  }
}

async function deleteValue(tx: Queryable, accountNo: number, keyNo: number, valueNo: number): Promise<void> {
  await tx.run(
    sql`DELETE FROM tag_value WHERE account_no = ${accountNo} AND key_no = ${keyNo} AND value_no = ${valueNo}`,
  );
  // Postings from the time before the value had bitmaps (index-delta.ts, invariant 3).
  await tx.run(
    sql`DELETE FROM tag_posting WHERE account_no = ${accountNo} AND key_no = ${keyNo} AND value_no = ${valueNo}`,
  );
  const types = await tx.all<{ value_no: number }>(
    sql`SELECT value_no FROM tag_value WHERE account_no = ${accountNo} AND key_no = 0`,
  );
  for (const type of types) {
    await tx.run(
      sql`DELETE FROM tag_value_type WHERE account_no = ${accountNo} AND key_no = ${keyNo}
          AND type_no = ${type.value_no} AND value_no = ${valueNo}`,
    );
  }
}
