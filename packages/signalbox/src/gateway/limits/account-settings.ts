/**
 * Stores a setting of the gateway that belongs to an account: its own prices, its limits. The database is the source of truth and is
 * written first; calls read `values`, the copy in memory.
 */
import type { Clock } from "../../core/clock.ts";
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";

export class AccountSettings<Value> {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #parse: (stored: unknown) => Value;
  readonly values: Map<string, Value>;

  /** `parse` gives stored values of an older version the defaults of newer members. */
  constructor(
    database: Database,
    clock: Clock,
    name: string,
    values: Map<string, Value>,
    parse: (stored: unknown) => Value,
  ) {
    this.values = values;
    this.#database = database;
    this.#clock = clock;
    this.#name = name;
    this.#parse = parse;
  }

  async load(): Promise<void> {
    const rows = await this.#database.all<{ readonly account_id: string; readonly value: string }>(
      sql`SELECT account_id, value FROM gateway_account_setting WHERE name = ${this.#name}`,
    );
    this.values.clear();
    for (const row of rows) this.values.set(row.account_id, this.#parse(JSON.parse(row.value)));
  }

  of(accountId: string): Value | undefined {
    return this.values.get(accountId);
  }

  async set(accountId: string, value: Value): Promise<void> {
    await this.#database.run(
      sql`INSERT INTO gateway_account_setting (account_id, name, value, modified_at)
          VALUES (${accountId}, ${this.#name}, ${JSON.stringify(value)}, ${this.#clock.now()})
          ON CONFLICT (account_id, name) DO UPDATE SET value = excluded.value, modified_at = excluded.modified_at`,
    );
    this.values.set(accountId, value);
  }

  async delete(accountId: string): Promise<void> {
    await this.#database.run(
      sql`DELETE FROM gateway_account_setting WHERE account_id = ${accountId} AND name = ${this.#name}`,
    );
    this.values.delete(accountId);
  }
}
