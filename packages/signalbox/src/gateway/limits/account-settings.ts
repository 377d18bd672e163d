/**
 * Stores a setting of the gateway that belongs to an account: its own prices, its limits. The database is the source of truth and is
 * written first; calls read `values`, the copy in memory. Changes run one after the other, so that none undoes another one.
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
  #lastChange: Promise<unknown> = Promise.resolve();

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

  /** Changes the present value, which is undefined if there is none; undefined removes it. `toValue` may refuse by throwing. */
  change<Next extends Value | undefined>(
    accountId: string,
    toValue: (present: Value | undefined) => Next,
  ): Promise<Next> {
    const changed = this.#lastChange.then(() => this.#change(accountId, toValue));
    // The next change runs whether this one succeeded or failed; the caller gets the failure.
    this.#lastChange = changed.catch(() => undefined);
    return changed;
  }

  async #change<Next extends Value | undefined>(
    accountId: string,
    toValue: (present: Value | undefined) => Next,
  ): Promise<Next> {
    // Read and written in one transaction, as for a gateway.
    const value = await this.#database.transaction(async (tx) => {
      const row = await tx.get<{ readonly value: string }>(
        sql`SELECT value FROM gateway_account_setting WHERE account_id = ${accountId} AND name = ${this.#name}`,
      );
      const next = toValue(row === undefined ? undefined : this.#parse(JSON.parse(row.value)));
      await tx.run(
        next === undefined
          ? sql`DELETE FROM gateway_account_setting WHERE account_id = ${accountId} AND name = ${this.#name}`
          : sql`INSERT INTO gateway_account_setting (account_id, name, value, modified_at)
                VALUES (${accountId}, ${this.#name}, ${JSON.stringify(next)}, ${this.#clock.now()})
                ON CONFLICT (account_id, name) DO UPDATE SET value = excluded.value, modified_at = excluded.modified_at`,
      );
      return next;
    });
    if (value === undefined) this.values.delete(accountId);
    else this.values.set(accountId, value);
    return value;
  }
}
