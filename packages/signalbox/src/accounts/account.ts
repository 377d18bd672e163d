/** Accounts: the tenants. Every other object belongs to one account. */
import { DOOR_WORDS, isIdentifier, SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../core/clock.ts";
import { ulid } from "../core/ulid.ts";
import type { Database } from "../database/database.ts";
import { LocalSettings, type SettingsStore, type SharedSettings } from "../database/shared-settings.ts";
import { sql, sqlList } from "../core/sql.ts";

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
}

/** Keeps all accounts in memory: there are few, and every management request needs one. The database is written before the memory. */
export class Accounts implements SettingsStore {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #settings: SharedSettings;
  readonly #byId = new Map<string, Account>();

  constructor(database: Database, clock: Clock, settings: SharedSettings = new LocalSettings(database)) {
    this.#database = database;
    this.#clock = clock;
    this.#settings = settings;
    settings.register("account", this);
  }

  load(): Promise<void> {
    return this.#settings.load("account");
  }

  async reload(ids: readonly string[] | null): Promise<void> {
    const selected = ids === null ? sql`` : sql`WHERE id IN (${sqlList(ids)})`;
    const rows = await this.#database.all<AccountRow>(
      sql`SELECT id, name, created_at FROM account ${selected} ORDER BY id`,
    );
    for (const id of ids ?? [...this.#byId.keys()]) this.#byId.delete(id);
    for (const row of rows) this.#byId.set(row.id, fromRow(row));
  }

  async create(wanted: { id?: string | undefined; name?: string | undefined }): Promise<Account> {
    const id = wanted.id ?? ulid(this.#clock.now()).toLowerCase();
    if (!isIdentifier(id)) {
      throw new SignalboxError("invalid_request", { message: "id must be 1 to 64 letters, digits, _ or -" });
    }
    if (DOOR_WORDS.has(id)) {
      throw new SignalboxError("invalid_request", {
        message: `id must not be ${id}: /v1/${id} is a path of the gateway`,
      });
    }
    const account: Account = { id, name: wanted.name ?? id, createdAt: this.#clock.now() };
    await this.#settings.write("account", async (tx, changed) => {
      const { changes } = await tx.run(
        sql`INSERT INTO account (id, name, created_at) VALUES (${account.id}, ${account.name}, ${account.createdAt})
            ON CONFLICT (id) DO NOTHING`,
      );
      if (changes === 0) throw new SignalboxError("conflict", { message: `account ${id} already exists` });
      changed(id);
    });
    return account;
  }

  find(id: string): Account | undefined {
    return this.#byId.get(id);
  }

  list(): Account[] {
    return [...this.#byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }
}

interface AccountRow {
  readonly id: string;
  readonly name: string;
  readonly created_at: number;
}

function fromRow(row: AccountRow): Account {
  return { id: row.id, name: row.name, createdAt: row.created_at };
}
