/**
 * Stores a setting of the gateway that belongs to an account: its own prices, its limits. The database is the source of truth and is
 * written first; calls read `values`, the copy in memory. A change reads the current value in its own transaction, so that none undoes another one.
 */
import type { Clock } from "../../core/clock.ts";
import { sql, sqlList } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import type { SettingsStore, SharedSettings } from "../../database/shared-settings.ts";

export interface AccountSettingsParts {
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
}

export class AccountSettings<Value> implements SettingsStore {
  readonly #parts: AccountSettingsParts;
  readonly #name: "prices" | "limits" | "guardrails";
  readonly #parse: (stored: unknown) => Value;
  readonly values: Map<string, Value>;

  /** `parse` gives stored values of an older version the defaults of newer members. */
  constructor(
    parts: AccountSettingsParts,
    name: "prices" | "limits" | "guardrails",
    values: Map<string, Value>,
    parse: (stored: unknown) => Value,
  ) {
    this.values = values;
    this.#parts = parts;
    this.#name = name;
    this.#parse = parse;
    parts.settings.register(name, this);
  }

  load(): Promise<void> {
    return this.#parts.settings.load(this.#name);
  }

  async reload(accountIds: readonly string[] | null): Promise<void> {
    const selected = accountIds === null ? sql`` : sql`AND account_id IN (${sqlList(accountIds)})`;
    const rows = await this.#parts.database.all<{ readonly account_id: string; readonly value: string }>(
      sql`SELECT account_id, value FROM gateway_account_setting WHERE name = ${this.#name} ${selected}`,
    );
    // A value that cannot be read leaves the present ones in force.
    const values = rows.map(({ account_id: id, value }) => [id, this.#parse(JSON.parse(value))] as const);
    for (const accountId of accountIds ?? [...this.values.keys()]) this.values.delete(accountId);
    for (const [accountId, value] of values) this.values.set(accountId, value);
  }

  of(accountId: string): Value | undefined {
    return this.values.get(accountId);
  }

  /** Changes the current value, which is undefined if there is none; undefined removes it. `toValue` may refuse by throwing. */
  change<Next extends Value | undefined>(
    accountId: string,
    toValue: (present: Value | undefined) => Next,
  ): Promise<Next> {
    const { settings, clock } = this.#parts;
    return settings.write(this.#name, async (tx, changed) => {
      const row = await tx.get<{ readonly value: string }>(
        sql`SELECT value FROM gateway_account_setting WHERE account_id = ${accountId} AND name = ${this.#name}`,
      );
      const next = toValue(row === undefined ? undefined : this.#parse(JSON.parse(row.value)));
      await tx.run(
        next === undefined
          ? sql`DELETE FROM gateway_account_setting WHERE account_id = ${accountId} AND name = ${this.#name}`
          : sql`INSERT INTO gateway_account_setting (account_id, name, value, modified_at)
                VALUES (${accountId}, ${this.#name}, ${JSON.stringify(next)}, ${clock.now()})
                ON CONFLICT (account_id, name) DO UPDATE SET value = excluded.value, modified_at = excluded.modified_at`,
      );
      changed(accountId);
      return next;
    });
  }
}
