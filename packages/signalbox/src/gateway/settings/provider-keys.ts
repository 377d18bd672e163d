/**
 * Provider keys that a gateway puts into calls which bring none. A key is never stored: its entry names the environment variable
 * that holds it, and the process reads it there.
 *
 * Which variables may be named is limited to those whose name says that they are that provider's key (`OPENAI_API_KEY`,
 * `OPENAI_API_KEY_TEAM_A`): whoever may edit a gateway must not be able to send any secret of the process to any provider.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database } from "../../storage/ports/database.ts";
import { sql } from "../../storage/ports/sql.ts";
import type { Gateway } from "./gateway.ts";

export interface ProviderKey {
  readonly id: string;
  readonly accountId: string;
  readonly gatewayId: string;
  readonly providerSlug: string;
  readonly alias: string;
  /** Used by calls that name no alias. */
  readonly isDefault: boolean;
  readonly envName: string;
  readonly modifiedAt: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

export class ProviderKeys {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #environment: Environment;
  /** By account, gateway and provider. */
  readonly #byProvider = new Map<string, ProviderKey[]>();

  constructor(database: Database, clock: Clock, environment: Environment) {
    this.#database = database;
    this.#clock = clock;
    this.#environment = environment;
  }

  async load(): Promise<void> {
    this.#byProvider.clear();
    const rows = await this.#database.all<ProviderKeyRow>(sql`SELECT * FROM provider_key ORDER BY id`);
    for (const row of rows) this.#put(fromRow(row));
  }

  list(gateway: Gateway): ProviderKey[] {
    return [...this.#byProvider.values()]
      .flat()
      .filter((key) => key.accountId === gateway.accountId && key.gatewayId === gateway.id)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /**
   * The key for a call: of the alias it names, else the provider's default one, else null. Throws `gateway_unknown_key_alias` for
   * an alias that is not there, or whose variable is not set.
   */
  find(gateway: Gateway, providerSlug: string, alias: string | undefined): string | null {
    const keys = this.#byProvider.get(placeOf(gateway.accountId, gateway.id, providerSlug));
    if (keys === undefined && alias === undefined) return null;
    const key = keys?.find((candidate) =>
      alias === undefined ? candidate.isDefault : candidate.alias === alias,
    );
    if (key === undefined) {
      if (alias === undefined) return null;
      const known = (keys ?? []).map((candidate) => candidate.alias).join(", ");
      throw new SignalboxError("gateway_unknown_key_alias", {
        message: `Unknown stored key alias; configured for ${providerSlug}: ${known === "" ? "none" : known}`,
      });
    }
    const text = this.#environment[key.envName];
    if (text !== undefined && text !== "") return text;
    throw new SignalboxError("gateway_unknown_key_alias", {
      message: `The stored key ${key.alias} has no value: set ${key.envName} in the service's environment`,
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
    const now = this.#clock.now();
    const key: ProviderKey = {
      ...wanted,
      id: ulid(now).toLowerCase(),
      accountId: gateway.accountId,
      gatewayId: gateway.id,
      modifiedAt: now,
    };
    await this.#database.transaction(async (tx) => {
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
    await this.#database.run(sql`DELETE FROM provider_key WHERE id = ${id}`);
    await this.load();
    return key;
  }

  /** Their rows go with the gateway's row. */
  forget(gateway: Gateway): void {
    for (const key of this.list(gateway)) {
      this.#byProvider.delete(placeOf(key.accountId, key.gatewayId, key.providerSlug));
    }
  }

  #put(key: ProviderKey): void {
    const place = placeOf(key.accountId, key.gatewayId, key.providerSlug);
    const keys = this.#byProvider.get(place);
    if (keys === undefined) this.#byProvider.set(place, [key]);
    else keys.push(key);
  }
}

/** `google-ai-studio` → `GOOGLE_AI_STUDIO_API_KEY`. */
export function envPrefix(providerSlug: string): string {
  return `${providerSlug.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}_API_KEY`;
}

function placeOf(accountId: string, gatewayId: string, providerSlug: string): string {
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
