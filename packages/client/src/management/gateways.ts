import { changeSettings } from "./change.ts";
import { List } from "./list.ts";
import type { CreatedToken, NewTokenPolicy } from "./tokens.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export interface SpendRule {
  readonly id?: string;
  readonly enabled?: boolean;
  readonly limitType: "cost" | "requests" | "tokens" | "parallel";
  /** US dollars, requests, tokens, or calls at the same time. */
  readonly limit: number;
  /** Seconds, a calendar period, or null for prepaid credit. */
  readonly window?: number | "day" | "week" | "month" | null;
  readonly technique?: "fixed" | "sliding";
  /** Of calendar periods; default UTC. */
  readonly timezone?: string;
  readonly model?: SpendFilter;
  readonly provider?: SpendFilter;
  readonly metadata?: Readonly<Record<string, { readonly mode: "partition" } | SpendFilter>>;
}

interface SpendFilter {
  readonly mode: "filter";
  readonly values: readonly string[];
}

export interface GatewaySettings {
  /** True: every call requires a token. */
  readonly authentication: boolean;
  /** True: stored provider keys are also used for calls without a token. */
  readonly allow_anonymous_keys: boolean;
  /** True: calls that neither have a provider's credential nor get a stored key are refused. */
  readonly byok_only: boolean;
  /** Seconds; null or 0 disables the cache. */
  readonly cache_ttl: number | null;
  readonly cache_invalidate_on_update: boolean;
  readonly collect_logs: boolean;
  readonly log_management: number | null;
  readonly log_management_strategy: "STOP_INSERTING" | "DELETE_OLDEST" | null;
  /** Seconds. */
  readonly rate_limiting_interval: number | null;
  readonly rate_limiting_limit: number | null;
  readonly rate_limiting_technique: "fixed" | "sliding" | null;
  readonly retry_max_attempts: number | null;
  /** Milliseconds. */
  readonly retry_delay: number | null;
  readonly retry_backoff: "constant" | "linear" | "exponential" | null;
  /** Receivers of OpenTelemetry traces. */
  readonly otel: readonly OtelReceiver[] | null;
  /** Whether prompts and answers are sent to them. */
  readonly otel_content: boolean;
  readonly spend_limits: SpendLimits | null;
  /** The price that a caller states for its call counts in limits. */
  readonly trust_custom_cost: boolean;
}

export interface SpendLimits {
  readonly enabled?: boolean;
  readonly rules?: readonly SpendRule[];
  /** For calls without a known price: refuse, do not count, or US dollars per million tokens. Default `block`. */
  readonly unknown_price?: "block" | "allow" | { readonly in: number; readonly out: number };
}

/** A receiver of OpenTelemetry traces (OTLP over HTTP). */
export interface OtelReceiver {
  readonly url: string;
  /** Values are shown as `[secret]`, which keeps the stored ones when it is sent back. */
  readonly headers: Readonly<Record<string, string>>;
  readonly authorization?: string;
  readonly content_type: "json" | "protobuf";
}

export interface Gateway extends GatewaySettings {
  readonly id: string;
  readonly is_default: boolean;
  readonly created_at: string;
  readonly modified_at: string;
}

export class GatewaysApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/ai-gateway/gateways`;
  }

  /** `search` matches a substring of the id; `tag` takes filters of the tagging interface. */
  list(
    query: {
      search?: string | undefined;
      tag?: readonly string[] | undefined;
      per_page?: number | undefined;
    } = {},
    options: RequestOptions = {},
  ): List<Gateway> {
    return new List(this.#transport, this.#path, query, options);
  }

  async create(
    gateway: { readonly id: string } & Partial<GatewaySettings>,
    options: RequestOptions = {},
  ): Promise<Gateway> {
    const request = { body: gateway, ...options };
    return this.#transport.result<Gateway>("POST", this.#path, request);
  }

  async get(id: string, options: RequestOptions = {}): Promise<Gateway> {
    return this.#transport.result<Gateway>("GET", this.#path + pathOf`/${id}`, options);
  }

  /** Absent settings are not changed. */
  async update(
    id: string,
    changes: Partial<GatewaySettings>,
    options: RequestOptions = {},
  ): Promise<Gateway> {
    const request = { body: changes, ...options };
    return this.#transport.result<Gateway>("PUT", this.#path + pathOf`/${id}`, request);
  }

  /** Changes settings by their present values; changes of other clients are kept. */
  async change(
    id: string,
    toChanges: (present: Gateway) => Partial<GatewaySettings>,
    options: RequestOptions = {},
  ): Promise<Gateway> {
    return changeSettings<Gateway>(this.#transport, "PUT", this.#path + pathOf`/${id}`, toChanges, options);
  }

  /** Deletes the gateway with its logs, stored keys and tags, and revokes the tokens bound to it. */
  async delete(id: string, options: RequestOptions = {}): Promise<Gateway> {
    return this.#transport.result<Gateway>("DELETE", this.#path + pathOf`/${id}`, options);
  }

  /** Creates a token with the `gateway.run` permission for this gateway. */
  async createToken(
    id: string,
    token: { name?: string | undefined; expires_at?: string | undefined } & NewTokenPolicy = {},
    options: RequestOptions = {},
  ): Promise<CreatedToken> {
    const path = this.#path + pathOf`/${id}/tokens`;
    return this.#transport.result<CreatedToken>("POST", path, { body: token, ...options });
  }

  /** Resolves to the base URL for a provider's client. */
  async providerUrl(id: string, provider: string, options: RequestOptions = {}): Promise<string> {
    const path = this.#path + pathOf`/${id}/url/${provider}`;
    return this.#transport.result<string>("GET", path, options);
  }
}
