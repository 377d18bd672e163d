/** Maps account ids to small numbers, which keep the rows of the index short. An account gets its number with its first write, permanently. */
import type { Database } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";
import { SCOPE_OF_NUMBERS } from "./tag-tables.ts";

export class AccountNumbers {
  readonly #database: Database;
  readonly #known = new Map<string, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** The number, if it has been read before. */
  known(accountId: string): number | undefined {
    return this.#known.get(accountId);
  }

  /** The numbers may belong to other accounts now. */
  forget(): void {
    this.#known.clear();
  }

  /** Null for an account without a write so far. */
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
      // If another node uses the same number first, nothing is inserted, and the loop repeats.
      const insert = sql`INSERT INTO tag_account
          (account_id, account_no, next_resource, next_key, next_value, next_change, pruned_change)
        SELECT ${accountId}, COALESCE(MAX(account_no), 0) + 1, 0, 1, 1, 1, 0 FROM tag_account WHERE 1 = 1
        ON CONFLICT DO NOTHING`;
      await this.#database.transaction((tx) => tx.run(insert), SCOPE_OF_NUMBERS);
    }
  }
}
