/**
 * The gateways of every account: the database is the truth and is written first, memory is what calls look at.
 *
 * Invariants:
 * 1. `find` never does I/O: it runs for every call.
 * 2. A change counts for every call that arrives after its answer was sent.
 * 3. The account `default` gets its gateway `default` at the first start; a deleted one does not come back.
 */
import { isIdentifier, SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../storage/ports/database.ts";
import { sql } from "../../storage/ports/sql.ts";
import { DEFAULT_GATEWAY, type Gateway } from "./gateway.ts";
import { DEFAULT_SETTINGS, gatewaySettings, type GatewaySettings } from "./gateway-settings.ts";

export interface GatewayListener {
  /** Read at the start, created, or given other settings. */
  onChanged(gateway: Gateway): void;
  onDeleted(gateway: Gateway): void;
}

export class Gateways {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #byAccount = new Map<string, Map<string, Gateway>>();
  readonly #listeners: GatewayListener[] = [];

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Reads every gateway; makes the one of the account `default` when there has never been one. */
  async load(defaultAccountId: string): Promise<void> {
    const rows = await this.#database.all<GatewayRow>(sql`SELECT * FROM gateway`);
    this.#byAccount.clear();
    for (const row of rows) this.#change(fromRow(row));
    if (!rows.some((row) => row.account_id === defaultAccountId)) {
      await this.create(defaultAccountId, DEFAULT_GATEWAY, {});
    }
  }

  listen(listener: GatewayListener): void {
    this.#listeners.push(listener);
  }

  find(accountId: string, id: string): Gateway | undefined {
    return this.#byAccount.get(accountId)?.get(id);
  }

  /** In order of their ids. */
  list(accountId: string): Gateway[] {
    return [...(this.#byAccount.get(accountId)?.values() ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async create(accountId: string, id: string, wanted: Partial<GatewaySettings>): Promise<Gateway> {
    if (!isIdentifier(id)) {
      throw new SignalboxError("invalid_request", { message: "id must be 1 to 64 letters, digits, _ or -" });
    }
    const now = this.#clock.now();
    const gateway: Gateway = {
      accountId,
      id,
      isDefault: id === DEFAULT_GATEWAY,
      createdAt: now,
      modifiedAt: now,
      settings: { ...DEFAULT_SETTINGS, ...wanted },
      cacheGeneration: now,
    };
    const { changes } = await this.#database.run(
      sql`INSERT INTO gateway (account_id, id, settings, is_default, created_at, modified_at)
          VALUES (${accountId}, ${id}, ${JSON.stringify(gateway.settings)}, ${gateway.isDefault ? 1 : 0}, ${now}, ${now})
          ON CONFLICT (account_id, id) DO NOTHING`,
    );
    if (changes === 0) throw new SignalboxError("conflict", { message: `gateway ${id} already exists` });
    this.#change(gateway);
    return gateway;
  }

  async update(accountId: string, id: string, wanted: Partial<GatewaySettings>): Promise<Gateway> {
    // Read and written in one transaction, so that two updates at once both count.
    const gateway = await this.#database.transaction(async (tx) => {
      const row = await tx.get<GatewayRow>(
        sql`SELECT * FROM gateway WHERE account_id = ${accountId} AND id = ${id}`,
      );
      if (row === undefined) throw gatewayMissing();
      const before = fromRow(row);
      const modifiedAt = this.#clock.now();
      const settings = { ...before.settings, ...wanted };
      await tx.run(
        sql`UPDATE gateway SET settings = ${JSON.stringify(settings)}, modified_at = ${modifiedAt}
            WHERE account_id = ${accountId} AND id = ${id}`,
      );
      const generation = this.find(accountId, id)?.cacheGeneration ?? before.cacheGeneration;
      return {
        ...before,
        settings,
        modifiedAt,
        cacheGeneration: settings.cache_invalidate_on_update ? generation + 1 : generation,
      };
    });
    this.#change(gateway);
    return gateway;
  }

  /** Calls find it no more from here on; what belongs to it is the caller's to remove. */
  async delete(accountId: string, id: string): Promise<Gateway> {
    const gateway = this.find(accountId, id);
    if (gateway === undefined) throw gatewayMissing();
    this.#byAccount.get(accountId)?.delete(id);
    await this.#database.run(sql`DELETE FROM gateway WHERE account_id = ${accountId} AND id = ${id}`);
    for (const listener of this.#listeners) listener.onDeleted(gateway);
    return gateway;
  }

  #change(gateway: Gateway): void {
    const ofAccount = this.#byAccount.get(gateway.accountId);
    if (ofAccount === undefined) this.#byAccount.set(gateway.accountId, new Map([[gateway.id, gateway]]));
    else ofAccount.set(gateway.id, gateway);
    for (const listener of this.#listeners) listener.onChanged(gateway);
  }
}

export function gatewayMissing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Gateway not found" });
}

interface GatewayRow {
  readonly account_id: string;
  readonly id: string;
  readonly settings: string;
  readonly is_default: number;
  readonly created_at: number;
  readonly modified_at: number;
}

function fromRow(row: GatewayRow): Gateway {
  return {
    accountId: row.account_id,
    id: row.id,
    isDefault: row.is_default === 1,
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
    // Parsed, so that settings written by an older version get the newer ones' defaults.
    settings: gatewaySettings.parse(JSON.parse(row.settings)),
    // The cache does not outlive the process, so any start will do.
    cacheGeneration: row.modified_at,
  };
}
