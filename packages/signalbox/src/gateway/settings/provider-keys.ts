/**
 * Provider keys that a gateway adds to calls without a credential. A key is never stored: its entry names the environment variable that
 * contains it.
 *
 * An entry may name only variables whose name belongs to the provider (`OPENAI_API_KEY`, `OPENAI_API_KEY_TEAM_A`): a user who may edit a
 * gateway must not be able to send another secret of the process to a provider. Of these variables an account may use those that the
 * operator granted (`key-grants.ts`).
 *
 * Invariants:
 * 1. The grant is checked when an entry is created and at each use: an entry for a variable that is no longer granted does not work.
 * 2. Responses do not reveal whether a variable exists that the account may not use.
 * See docs/decisions/0014.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";
import type { Gateway } from "./gateway.ts";
import { grantedReach, type KeyGrants, type KeyReach, type KeyUse } from "./key-grants.ts";

export interface ProviderKey {
  readonly id: string;
  readonly accountId: string;
  readonly gatewayId: string;
  readonly providerSlug: string;
  readonly alias: string;
  /** Used by calls without an alias. */
  readonly isDefault: boolean;
  readonly envName: string;
  readonly modifiedAt: number;
}

export interface ProviderKeysParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly grants: KeyGrants;
  /** The present origin of a custom provider; undefined when it does not exist. */
  readonly customOrigin: (accountId: string, providerSlug: string) => string | undefined;
}

/** An entry and its grant, which does not change while the process runs. */
interface Granted<Use extends KeyUse> {
  readonly key: Use;
  /** Null when the account may not use the key. */
  readonly reach: KeyReach | null;
}

export class ProviderKeys {
  readonly #parts: ProviderKeysParts;
  /** By account, gateway and provider. */
  readonly #byProvider = new Map<string, Granted<ProviderKey>[]>();

  constructor(parts: ProviderKeysParts) {
    this.#parts = parts;
  }

  async load(): Promise<void> {
    const rows = await this.#parts.database.all<ProviderKeyRow>(sql`SELECT * FROM provider_key ORDER BY id`);
    this.#byProvider.clear();
    for (const row of rows) this.#put(fromRow(row));
  }

  list(gateway: Gateway): ProviderKey[] {
    return [...this.#byProvider.values()]
      .flatMap((loaded) => loaded.map(({ key }) => key))
      .filter((key) => key.accountId === gateway.accountId && key.gatewayId === gateway.id)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /**
   * The key for a call: that of the alias, else the provider's default key, else null. Throws `gateway_unknown_key_alias` for an unknown
   * alias, and for one whose variable is not set or not granted.
   */
  find(gateway: Gateway, providerSlug: string, alias: string | undefined): string | null {
    const keys = this.#byProvider.get(keyOf(gateway.accountId, gateway.id, providerSlug));
    if (keys === undefined && alias === undefined) return null;
    const found = keys?.find(({ key }) => (alias === undefined ? key.isDefault : key.alias === alias));
    if (found === undefined) {
      if (alias === undefined) return null;
      const known = (keys ?? []).map(({ key }) => key.alias).join(", ");
      throw new SignalboxError("gateway_unknown_key_alias", {
        message: `Unknown stored key alias; configured for ${providerSlug}: ${known === "" ? "none" : known}`,
      });
    }
    const text = this.#mayUse(found) ? this.#parts.environment[found.key.envName] : undefined;
    if (text !== undefined && text !== "") return text;
    throw new SignalboxError("gateway_unknown_key_alias", {
      message: `The stored key ${found.key.alias} cannot be used: its variable is not set, or not given to this account`,
    });
  }

  async create(
    gateway: Gateway,
    wanted: Pick<ProviderKey, "providerSlug" | "alias" | "isDefault" | "envName">,
  ): Promise<ProviderKey> {
    const prefix = envPrefix(wanted.providerSlug);
    if (wanted.envName !== prefix && !wanted.envName.startsWith(`${prefix}_`)) {
      throw new SignalboxError("invalid_request", {
        message: `secret_id must be ${prefix} or begin with ${prefix}_`,
      });
    }
    if (!this.#mayUse(this.#grant({ ...wanted, accountId: gateway.accountId }))) {
      throw new SignalboxError("invalid_request", {
        message: `secret_id: this account may not use ${wanted.envName}; the operator gives variables to accounts (gateway.providerKeys)`,
      });
    }
    const now = this.#parts.clock.now();
    const key: ProviderKey = {
      ...wanted,
      id: ulid(now).toLowerCase(),
      accountId: gateway.accountId,
      gatewayId: gateway.id,
      modifiedAt: now,
    };
    await this.#parts.database.transaction(async (tx) => {
      if (key.isDefault) {
        await tx.run(
          sql`UPDATE provider_key SET is_default = 0 WHERE account_id = ${key.accountId}
              AND gateway_id = ${key.gatewayId} AND provider_slug = ${key.providerSlug}`,
        );
      }
      const { changes } = await tx.run(
        sql`INSERT INTO provider_key (id, account_id, gateway_id, provider_slug, alias, is_default, env_name, modified_at)
            VALUES (${key.id}, ${key.accountId}, ${key.gatewayId}, ${key.providerSlug}, ${key.alias},
                    ${key.isDefault ? 1 : 0}, ${key.envName}, ${now})
            ON CONFLICT (account_id, gateway_id, provider_slug, alias) DO NOTHING`,
      );
      if (changes === 0)
        throw new SignalboxError("conflict", { message: `alias ${key.alias} already exists` });
    });
    await this.load();
    return key;
  }

  async delete(gateway: Gateway, id: string): Promise<ProviderKey> {
    const key = this.list(gateway).find((candidate) => candidate.id === id);
    if (key === undefined) throw new SignalboxError("not_found", { message: "Provider config not found" });
    await this.#parts.database.run(sql`DELETE FROM provider_key WHERE id = ${id}`);
    await this.load();
    return key;
  }

  /** The gateway was deleted; the database deleted the rows. */
  forget(gateway: Gateway): void {
    for (const key of this.list(gateway)) {
      this.#byProvider.delete(keyOf(key.accountId, key.gatewayId, key.providerSlug));
    }
  }

  #put(key: ProviderKey): void {
    const name = keyOf(key.accountId, key.gatewayId, key.providerSlug);
    const loaded = this.#grant(key);
    const keys = this.#byProvider.get(name);
    if (keys === undefined) this.#byProvider.set(name, [loaded]);
    else keys.push(loaded);
  }

  #grant<Use extends KeyUse>(key: Use): Granted<Use> {
    return { key, reach: grantedReach(this.#parts.grants, key) };
  }

  #mayUse({ key, reach }: Granted<KeyUse>): boolean {
    if (reach === null) return false;
    if (reach.to === "anywhere") return true;
    return this.#parts.customOrigin(key.accountId, key.providerSlug) === reach.origin;
  }
}

/** `google-ai-studio` → `GOOGLE_AI_STUDIO_API_KEY`. */
export function envPrefix(providerSlug: string): string {
  return `${providerSlug.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}_API_KEY`;
}

function keyOf(accountId: string, gatewayId: string, providerSlug: string): string {
  return `${accountId}/${gatewayId}/${providerSlug}`;
}

interface ProviderKeyRow {
  readonly id: string;
  readonly account_id: string;
  readonly gateway_id: string;
  readonly provider_slug: string;
  readonly alias: string;
  readonly is_default: number;
  readonly env_name: string;
  readonly modified_at: number;
}

function fromRow(row: ProviderKeyRow): ProviderKey {
  return {
    id: row.id,
    accountId: row.account_id,
    gatewayId: row.gateway_id,
    providerSlug: row.provider_slug,
    alias: row.alias,
    isDefault: row.is_default === 1,
    envName: row.env_name,
    modifiedAt: row.modified_at,
  };
}
