/**
 * The gateways of all accounts. The database is the source of truth and is written first; calls read the copy in memory.
 *
 * Invariants:
 * 1. `find` does no I/O: it runs for every call.
 * 2. A change applies to every call that arrives after the response to the change was sent.
 * 3. The account `default` gets its gateway `default` at the first start; once deleted, it is not created again.
 * 4. A new gateway inherits nothing from a deleted one of the same name.
 */
import { isIdentifier, SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { invalidRequest } from "../../core/invalid-request.ts";
import type { Database, Queryable } from "../../database/database.ts";
import {
  findToDelete,
  LocalSettings,
  type SettingsStore,
  type SharedSettings,
} from "../../database/shared-settings.ts";
import { SerialByKey } from "../../core/serial.ts";
import { joinSql, sql } from "../../core/sql.ts";
import { DEFAULT_GATEWAY, type Gateway } from "./gateway.ts";
import type { GatewayDeletions } from "./gateway-deletions.ts";
import { DEFAULT_SETTINGS, gatewaySettings, type GatewaySettings } from "./gateway-settings.ts";

export interface GatewayListener {
  /** The gateway was loaded, created or updated. A change is answered when this has resolved: from then on calls follow the new settings. */
  onChanged(gateway: Gateway): void | Promise<void>;
  onDeleted(gateway: Gateway): void;
}

/** Every process keeps the gateways of all accounts in memory, with all their settings. */
const MAX_GATEWAYS_OF_ACCOUNT = 1000;
/** The row of `first_start`. */
const DEFAULT_GATEWAY_MADE = "default_gateway";

export class Gateways implements SettingsStore {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #deletions: GatewayDeletions;
  readonly #byAccount = new Map<string, Map<string, Gateway>>();
  readonly #listeners: GatewayListener[] = [];
  readonly #settings: SharedSettings;
  /** By gateway name. */
  readonly #changes = new SerialByKey();

  constructor(
    database: Database,
    clock: Clock,
    deletions: GatewayDeletions,
    settings: SharedSettings = new LocalSettings(database),
  ) {
    this.#database = database;
    this.#settings = settings;
    settings.register("gateway", this);
    this.#clock = clock;
    this.#deletions = deletions;
  }

  /** Loads all gateways; at the first start creates the gateway of the account `default`. */
  async load(defaultAccountId: string): Promise<void> {
    // Only the first start writes: a write waits for the other nodes.
    const made = await this.#database.get(
      sql`SELECT name FROM first_start WHERE name = ${DEFAULT_GATEWAY_MADE}`,
    );
    if (made === undefined) await this.#createDefault(defaultAccountId);
    await this.#settings.load("gateway");
  }

  async #createDefault(accountId: string): Promise<void> {
    await this.#settings.write("gateway", async (tx, changed) => {
      const { changes } = await tx.run(
        sql`INSERT INTO first_start (name, done_at) VALUES (${DEFAULT_GATEWAY_MADE}, ${this.#clock.now()})
            ON CONFLICT (name) DO NOTHING`,
      );
      // Another node was faster.
      if (changes === 0) return;
      const gateway = this.#newGateway(accountId, DEFAULT_GATEWAY, {});
      await insert(tx, gateway);
      changed(keyOf(gateway));
    });
  }

  async reload(keys: readonly string[] | null): Promise<void> {
    const rows = await this.#readRows(keys);
    const known = keys === null ? this.#all() : keys.flatMap((key) => this.#findByKey(key) ?? []);
    const found = new Map(rows.map((row) => [keyOf(fromRow(row)), row]));
    for (const gateway of known) {
      // A gateway of the same name that was created after it inherits nothing.
      if (found.get(keyOf(gateway))?.created_at !== gateway.createdAt) this.#forget(gateway);
    }
    await Promise.all(rows.map((row) => this.#change(fromRow(row))));
  }

  #readRows(keys: readonly string[] | null): Promise<GatewayRow[]> {
    const conditions = (keys ?? []).map((key) => {
      const [accountId = "", id = ""] = key.split("/");
      return sql`(account_id = ${accountId} AND id = ${id})`;
    });
    const selected = keys === null ? sql`` : sql`WHERE ${joinSql(conditions, " OR ")}`;
    return this.#database.all<GatewayRow>(sql`SELECT * FROM gateway ${selected}`);
  }

  #all(): Gateway[] {
    return [...this.#byAccount.values()].flatMap((ofAccount) => [...ofAccount.values()]);
  }

  #findByKey(key: string): Gateway | undefined {
    const [accountId = "", id = ""] = key.split("/");
    return this.find(accountId, id);
  }

  #forget(gateway: Gateway): void {
    this.#byAccount.get(gateway.accountId)?.delete(gateway.id);
    for (const listener of this.#listeners) listener.onDeleted(gateway);
  }

  listen(listener: GatewayListener): void {
    this.#listeners.push(listener);
  }

  find(accountId: string, id: string): Gateway | undefined {
    return this.#byAccount.get(accountId)?.get(id);
  }

  #require(accountId: string, id: string): Gateway {
    const gateway = this.find(accountId, id);
    if (gateway === undefined) throw gatewayMissing();
    return gateway;
  }

  /** Sorted by id. */
  list(accountId: string): Gateway[] {
    return [...(this.#byAccount.get(accountId)?.values() ?? [])].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async create(accountId: string, id: string, wanted: Partial<GatewaySettings>): Promise<Gateway> {
    if (!isIdentifier(id)) {
      throw new SignalboxError("invalid_request", { message: "id must be 1 to 64 letters, digits, _ or -" });
    }
    return this.#changes.run(`${accountId}/${id}`, async () => {
      await this.#deletions.finish({ accountId, gatewayId: id });
      if ((this.#byAccount.get(accountId)?.size ?? 0) >= MAX_GATEWAYS_OF_ACCOUNT)
        throw invalidRequest(`An account has at most ${MAX_GATEWAYS_OF_ACCOUNT} gateways`);
      const gateway = this.#newGateway(accountId, id, wanted);
      await this.#settings.write("gateway", async (tx, changed) => {
        if (!(await insert(tx, gateway)))
          throw new SignalboxError("conflict", { message: `gateway ${id} already exists` });
        changed(keyOf(gateway));
      });
      return gateway;
    });
  }

  async update(accountId: string, id: string, wanted: Partial<GatewaySettings>): Promise<Gateway> {
    return this.change(accountId, id, () => wanted);
  }

  /** Updates the gateway by its present settings; `toChanges` may refuse by throwing. */
  async change(
    accountId: string,
    id: string,
    toChanges: (present: GatewaySettings) => Partial<GatewaySettings>,
  ): Promise<Gateway> {
    return this.#changes.run(`${accountId}/${id}`, () => this.#update(accountId, id, toChanges));
  }

  /**
   * Deletes the gateway; calls no longer find it. Resolves when its tokens, calls and tags are deleted as well. Rejects when that failed
   * after the gateway was deleted; the rest is then deleted later.
   */
  async delete(accountId: string, id: string): Promise<Gateway> {
    return this.#changes.run(`${accountId}/${id}`, () => this.#delete(accountId, id));
  }

  async #update(
    accountId: string,
    id: string,
    toChanges: (present: GatewaySettings) => Partial<GatewaySettings>,
  ): Promise<Gateway> {
    // Read and written in one transaction, so that simultaneous updates do not overwrite each other.
    return this.#settings.write("gateway", async (tx, changed) => {
      const row = await tx.get<GatewayRow>(
        sql`SELECT * FROM gateway WHERE account_id = ${accountId} AND id = ${id}`,
      );
      if (row === undefined) throw gatewayMissing();
      const before = fromRow(row);
      const modifiedAt = this.#clock.now();
      const settings = { ...before.settings, ...toChanges(before.settings) };
      const cacheGeneration = before.cacheGeneration + (settings.cache_invalidate_on_update ? 1 : 0);
      await tx.run(
        sql`UPDATE gateway SET settings = ${JSON.stringify(settings)}, modified_at = ${modifiedAt}, cache_generation = ${cacheGeneration}
            WHERE account_id = ${accountId} AND id = ${id}`,
      );
      changed(keyOf(before));
      return { ...before, settings, modifiedAt, cacheGeneration };
    });
  }

  async #delete(accountId: string, id: string): Promise<Gateway> {
    const ref = { accountId, gatewayId: id };
    // A client may repeat a deletion that failed half-way.
    await this.#deletions.finish(ref);
    const gateway = await findToDelete(this.#settings, () => this.#require(accountId, id));
    await this.#settings.write("gateway", async (tx, changed) => {
      const { changes } = await tx.run(
        sql`DELETE FROM gateway WHERE account_id = ${accountId} AND id = ${id}`,
      );
      if (changes === 0) throw gatewayMissing();
      await this.#deletions.record(tx, ref, this.#clock.now());
      changed(keyOf(gateway));
    });
    await this.#deletions.finish(ref, true);
    return gateway;
  }

  #newGateway(accountId: string, id: string, wanted: Partial<GatewaySettings>): Gateway {
    const now = this.#clock.now();
    return {
      accountId,
      id,
      isDefault: id === DEFAULT_GATEWAY,
      createdAt: now,
      modifiedAt: now,
      settings: { ...DEFAULT_SETTINGS, ...wanted },
      // Later than that of any deleted gateway of the name.
      cacheGeneration: now,
    };
  }

  async #change(gateway: Gateway): Promise<void> {
    const ofAccount = this.#byAccount.get(gateway.accountId);
    if (ofAccount === undefined) this.#byAccount.set(gateway.accountId, new Map([[gateway.id, gateway]]));
    else ofAccount.set(gateway.id, gateway);
    await Promise.all(this.#listeners.map(async (listener) => listener.onChanged(gateway)));
  }
}

/** Identifiers contain no slash. */
function keyOf({ accountId, id }: Gateway): string {
  return `${accountId}/${id}`;
}

export function gatewayMissing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Gateway not found" });
}

/** False when a gateway of that name exists. */
async function insert(database: Queryable, gateway: Gateway): Promise<boolean> {
  const { accountId, id, settings, isDefault, createdAt, modifiedAt, cacheGeneration } = gateway;
  const { changes } = await database.run(
    sql`INSERT INTO gateway (account_id, id, settings, is_default, created_at, modified_at, cache_generation)
        VALUES (${accountId}, ${id}, ${JSON.stringify(settings)}, ${isDefault ? 1 : 0}, ${createdAt}, ${modifiedAt}, ${cacheGeneration})
        ON CONFLICT (account_id, id) DO NOTHING`,
  );
  return changes > 0;
}

interface GatewayRow {
  readonly account_id: string;
  readonly id: string;
  readonly settings: string;
  readonly is_default: number;
  readonly created_at: number;
  readonly modified_at: number;
  readonly cache_generation: number;
}

function fromRow(row: GatewayRow): Gateway {
  return {
    accountId: row.account_id,
    id: row.id,
    isDefault: row.is_default === 1,
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
    // Parsed, so that settings of an older version get the defaults of newer settings.
    settings: gatewaySettings.parse(JSON.parse(row.settings)),
    cacheGeneration: row.cache_generation,
  };
}
