/** Accounts as small numbers, which keep the index's rows short. A number is given at the first write and never changes. */
import type { Database } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";

export class AccountNumbers {
  readonly #database: Database;
  readonly #known = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** The number if it is in memory. */
  known(accountId: string): number | undefined {
    return this.#known.get(accountId);
  }

  /** Null for an account that has never had a tag. */
  async find(accountId: string): Promise<number | null> {
    const known = this.#known.get(accountId);
    if (known !== undefined) return known;
    const row = await this.#database.get<{ account_no: number }>(
      sql`SELECT account_no FROM tag_account WHERE account_id = ${accountId}`,
    );
    if (row === undefined) return null;
    this.#known.set(accountId, row.account_no);
    return row.account_no;
  }

  async findOrCreate(accountId: string): Promise<number> {
    for (;;) {
      const found = await this.find(accountId);
      if (found !== null) return found;
      // Another node may take the same number at the same time: then nothing is inserted here, and the next round tries again.
      await this.#database.run(
        sql`INSERT INTO tag_account (account_id, account_no, next_resource, next_key, next_value, next_change, pruned_change)
            SELECT ${accountId}, COALESCE(MAX(account_no), 0) + 1, 0, 1, 1, 1, 0 FROM tag_account WHERE 1 = 1
            ON CONFLICT DO NOTHING`,
      );
    }
  }
}
