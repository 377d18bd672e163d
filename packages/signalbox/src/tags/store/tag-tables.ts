/**
 * Scopes of transactions on the tag tables, which no other area uses. See docs/decisions/0030 and 0031.
 *
 * Every transaction of an account first updates its row in `tag_account`. On PostgreSQL this locks the account for all nodes, so no further lock
 * is needed, and accounts do not wait for each other.
 */
import { sql } from "../../core/sql.ts";
import type { Queryable, TransactionOptions } from "../../database/database.ts";

export function scopeOfAccount(accountNo: number): TransactionOptions {
  return { scope: `tags ${accountNo}`, isConcurrent: true };
}

/** For a transaction that reads rows of the account before it executes writes. */
export async function lockAccount(tx: Queryable, accountNo: number): Promise<void> {
  await tx.run(sql`UPDATE tag_account SET next_change = next_change WHERE account_no = ${accountNo}`);
}

/** For the statement that gives an account its number: it inserts nothing if another node uses the number first. */
export const SCOPE_OF_NUMBERS: TransactionOptions = { scope: "tag accounts", isConcurrent: true };
