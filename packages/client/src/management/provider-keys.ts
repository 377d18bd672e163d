import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

/** A provider key, without the key itself. */
export interface ProviderKey {
  readonly id: string;
  /** Empty for a key that only the pool uses. */
  readonly alias: string;
  readonly default_config: boolean;
  /** Null for a key of all gateways of the account. */
  readonly gateway_id: string | null;
  readonly provider_slug: string;
  readonly secret_id: string;
  /** The last four characters of a stored key, or where the service finds the key. */
  readonly secret_preview: string;
  readonly weight: number;
  readonly models: readonly string[];
  readonly rate_limit: number | null;
  /** Seconds. */
  readonly rate_limit_period: number;
  readonly disabled: boolean;
  readonly status: "active" | "cooldown" | "invalid" | "disabled";
  readonly cooldown_until: string | null;
  /** Models for which the provider refused the key. */
  readonly refused_models: readonly string[];
  /** Of a key that is a cloud identity: where its credentials come from, until when they are good, and why there are no newer ones. */
  readonly identity: {
    readonly source: string;
    readonly expires_at: string | null;
    readonly error: string | null;
  } | null;
  readonly last_used_at: string | null;
  readonly created_at: string;
  readonly modified_at: string;
}

/** Absent members are not changed. */
export interface ProviderKeyChange {
  readonly alias?: string | undefined;
  readonly default_config?: boolean | undefined;
  /** The key itself, which the service stores encrypted. */
  readonly secret?: string | undefined;
  /** `env:NAME` or `file:PATH`: where the service finds the key. */
  readonly secret_id?: string | undefined;
  readonly weight?: number | undefined;
  readonly models?: readonly string[] | null | undefined;
  readonly rate_limit?: number | null | undefined;
  readonly rate_limit_period?: number | undefined;
  readonly disabled?: boolean | undefined;
}

export class ProviderKeysApi {
  readonly #transport: Transport;
  readonly #path: string;

  /** The keys of one gateway; without a gateway, those of all gateways of the account. */
  constructor(transport: Transport, accountPath: string, gatewayId?: string) {
    this.#transport = transport;
    const gateway = gatewayId === undefined ? "" : pathOf`/gateways/${gatewayId}`;
    this.#path = `${accountPath}/ai-gateway${gateway}/provider_configs`;
  }

  list(query: { per_page?: number | undefined } = {}, options: RequestOptions = {}): List<ProviderKey> {
    return new List(this.#transport, this.#path, query, options);
  }

  async create(
    key: { readonly provider_slug: string } & ProviderKeyChange,
    options: RequestOptions = {},
  ): Promise<ProviderKey> {
    return this.#transport.result<ProviderKey>("POST", this.#path, { body: key, ...options });
  }

  async get(id: string, options: RequestOptions = {}): Promise<ProviderKey> {
    return this.#transport.result<ProviderKey>("GET", this.#path + pathOf`/${id}`, options);
  }

  /** The key counts as active again. */
  async update(id: string, change: ProviderKeyChange, options: RequestOptions = {}): Promise<ProviderKey> {
    const request = { body: change, ...options };
    return this.#transport.result<ProviderKey>("PATCH", this.#path + pathOf`/${id}`, request);
  }

  async delete(id: string, options: RequestOptions = {}): Promise<ProviderKey> {
    return this.#transport.result<ProviderKey>("DELETE", this.#path + pathOf`/${id}`, options);
  }
}
