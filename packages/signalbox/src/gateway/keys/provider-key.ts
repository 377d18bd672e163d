/** A provider key of a gateway or an account, and its row in the database. */
import { sql, type SqlQuery } from "../../core/sql.ts";
import type { KeyOwner, SealedKey } from "./key-vault.ts";

export interface ProviderKey extends KeyOwner {
  readonly providerSlug: string;
  /** Empty for a key that calls cannot name; it belongs to the pool. */
  readonly alias: string;
  /** Used by calls without an alias. */
  readonly isDefault: boolean;
  /** `env:NAME` or `file:PATH`; null for a key that is stored here. */
  readonly secretId: string | null;
  readonly sealed: SealedKey | null;
  /** The last four characters of a stored key. */
  readonly preview: string;
  readonly weight: number;
  /** Globs of models, `!` excludes; empty: all models. */
  readonly models: readonly string[];
  /** Calls per period; null: no limit. */
  readonly rateLimit: number | null;
  readonly rateLimitPeriodS: number;
  readonly isDisabled: boolean;
  readonly invalidSince: number | null;
  readonly lastUsedAt: number | null;
  readonly createdAt: number;
  readonly modifiedAt: number;
}

export const DEFAULT_PERIOD_S = 60;

export interface ProviderKeyRow {
  readonly id: string;
  readonly account_id: string;
  readonly gateway_id: string | null;
  readonly provider_slug: string;
  readonly alias: string;
  readonly is_default: number;
  readonly secret_id: string | null;
  readonly sealed: string | null;
  readonly data_key: string | null;
  readonly preview: string;
  readonly bound_to: string | null;
  readonly weight: number;
  readonly models: string;
  readonly rate_limit: number | null;
  readonly rate_limit_period: number | null;
  readonly disabled: number;
  readonly invalid_since: number | null;
  readonly last_used_at: number | null;
  readonly created_at: number;
  readonly modified_at: number;
}

export function fromRow(row: ProviderKeyRow): ProviderKey {
  return {
    id: row.id,
    accountId: row.account_id,
    gatewayId: row.gateway_id,
    providerSlug: row.provider_slug,
    alias: row.alias,
    isDefault: row.is_default === 1,
    secretId: row.secret_id,
    sealed: row.sealed === null ? null : { sealed: row.sealed, dataKey: row.data_key ?? "" },
    preview: row.preview,
    boundTo: row.bound_to,
    weight: row.weight,
    models: JSON.parse(row.models) as string[],
    rateLimit: row.rate_limit,
    rateLimitPeriodS: row.rate_limit_period ?? DEFAULT_PERIOD_S,
    isDisabled: row.disabled === 1,
    invalidSince: row.invalid_since,
    lastUsedAt: row.last_used_at,
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
  };
}

/** Inserts the key, or replaces the row with its id. No row changes if the alias belongs to another key. */
export function putKey(key: ProviderKey): SqlQuery {
  return sql`INSERT INTO stored_provider_key
      (id, account_id, gateway_id, provider_slug, alias, is_default, secret_id, sealed, data_key, preview, bound_to, weight, models,
       rate_limit, rate_limit_period, disabled, invalid_since, last_used_at, created_at, modified_at)
    VALUES (${key.id}, ${key.accountId}, ${key.gatewayId}, ${key.providerSlug}, ${key.alias}, ${key.isDefault ? 1 : 0}, ${key.secretId},
       ${key.sealed?.sealed ?? null}, ${key.sealed?.dataKey ?? null}, ${key.preview}, ${key.boundTo}, ${key.weight},
       ${JSON.stringify(key.models)}, ${key.rateLimit}, ${key.rateLimitPeriodS}, ${key.isDisabled ? 1 : 0}, ${key.invalidSince},
       ${key.lastUsedAt}, ${key.createdAt}, ${key.modifiedAt})
    ON CONFLICT (id) DO UPDATE SET alias = excluded.alias, is_default = excluded.is_default, secret_id = excluded.secret_id,
      sealed = excluded.sealed, data_key = excluded.data_key, preview = excluded.preview, bound_to = excluded.bound_to,
      weight = excluded.weight, models = excluded.models, rate_limit = excluded.rate_limit,
      rate_limit_period = excluded.rate_limit_period, disabled = excluded.disabled, invalid_since = excluded.invalid_since,
      last_used_at = excluded.last_used_at, modified_at = excluded.modified_at`;
}

/** `mayHaveWorked`: also a key that was accepted before. */
export function markInvalid({ id, modifiedAt }: ProviderKey, now: number, mayHaveWorked: boolean): SqlQuery {
  const condition = mayHaveWorked ? sql`` : sql`AND last_used_at IS NULL`;
  return sql`UPDATE stored_provider_key SET invalid_since = ${now}
    WHERE id = ${id} AND modified_at = ${modifiedAt} AND invalid_since IS NULL ${condition}`;
}

/** The provider has accepted the key for the first time. Another node may have taken a 403, which concerned a model, for a refusal of the key. */
export function markWorked({ id, modifiedAt }: ProviderKey, usedAt: number): SqlQuery {
  return sql`UPDATE stored_provider_key SET last_used_at = ${usedAt}, invalid_since = NULL
    WHERE id = ${id} AND modified_at = ${modifiedAt} AND last_used_at IS NULL`;
}

export function markUsed({ id, modifiedAt }: ProviderKey, usedAt: number): SqlQuery {
  return sql`UPDATE stored_provider_key SET last_used_at = ${usedAt}
    WHERE id = ${id} AND modified_at = ${modifiedAt} AND COALESCE(last_used_at, 0) < ${usedAt}`;
}
