import type { Permission } from "@signalbox/protocol";
import { changeSettings } from "./change.ts";
import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";
import type { Usage, UsageQuery } from "./usage.ts";

export interface TokenBudget {
  /** US dollars. */
  readonly limit: number;
  /** Seconds, a calendar period, or null for an amount that never comes back. */
  readonly window: number | "day" | "week" | "month" | null;
  readonly reset?: "fixed" | "sliding";
  /** IANA name. Default `UTC`. */
  readonly timezone?: string;
}

export interface TokenRateLimit {
  readonly type: "requests" | "tokens" | "parallel";
  readonly limit: number;
  /** Seconds; null for `parallel`. */
  readonly interval?: number | null;
}

/** What makes a token a virtual key. */
export interface TokenPolicy {
  readonly budgets: readonly TokenBudget[];
  readonly soft_budget: TokenBudget | null;
  readonly rate_limits: readonly TokenRateLimit[];
  /** Globs of `provider/model`; `!` excludes. Empty: all models. */
  readonly models: readonly string[];
  readonly providers: readonly string[];
  readonly routes: readonly string[];
  /** Rules on the texts of its calls, in the form of a gateway's guardrails. */
  readonly guardrails?: readonly Readonly<Record<string, unknown>>[];
  /** Stamped on every call of the token. */
  readonly metadata: Readonly<Record<string, string | number | boolean | null>>;
  readonly owner: string | null;
  readonly tags: Readonly<Record<string, string>>;
  readonly disabled: boolean;
}

type Nullable<T> = { readonly [Name in keyof T]?: T[Name] | null | undefined };

export interface Token extends TokenPolicy {
  readonly id: string;
  readonly name: string;
  readonly permissions: readonly Permission[];
  /** The gateway that the token is bound to. */
  readonly gateway_id: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly last_four: string;
  /** The time until which the text before the last rotation is valid. */
  readonly previous_expires_at: string | null;
}

/** `token` is the secret text. The service returns it in this response only. */
export interface CreatedToken extends Token {
  readonly token: string;
}

export interface NewToken extends NewTokenPolicy {
  readonly name: string;
  readonly permissions: readonly Permission[];
  readonly gateway_id?: string | undefined;
  readonly expires_at?: string | undefined;
}

export interface NewTokenPolicy extends Nullable<Omit<TokenPolicy, "disabled">> {
  readonly disabled?: boolean | undefined;
}

/** Absent members are not changed; null removes one. */
export interface TokenChange extends NewTokenPolicy {
  readonly name?: string | undefined;
  readonly expires_at?: string | null | undefined;
}

export class TokensApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/tokens`;
  }

  async create(token: NewToken, options: RequestOptions = {}): Promise<CreatedToken> {
    const request = { body: token, ...options };
    return this.#transport.result<CreatedToken>("POST", this.#path, request);
  }

  list(
    query: { owner?: string | undefined; gateway_id?: string | undefined } = {},
    options: RequestOptions = {},
  ): List<Token> {
    return new List(this.#transport, this.#path, query, options);
  }

  async get(id: string, options: RequestOptions = {}): Promise<Token> {
    return this.#transport.result<Token>("GET", this.#path + pathOf`/${id}`, options);
  }

  /** Applies to the next call. */
  async update(id: string, change: TokenChange, options: RequestOptions = {}): Promise<Token> {
    const request = { body: change, ...options };
    return this.#transport.result<Token>("PATCH", this.#path + pathOf`/${id}`, request);
  }

  /** Changes a token by its present settings; changes of other clients, and credit that they add, are kept. */
  async change(
    id: string,
    toChange: (present: Token) => TokenChange,
    options: RequestOptions = {},
  ): Promise<Token> {
    return changeSettings<Token>(this.#transport, "PATCH", this.#path + pathOf`/${id}`, toChange, options);
  }

  /** Gives the token a new text. The old one is valid for `grace_s` more seconds; default 0. */
  async rotate(
    id: string,
    { grace_s }: { grace_s?: number | undefined } = {},
    options: RequestOptions = {},
  ): Promise<CreatedToken> {
    const request = { body: { grace_s }, ...options };
    return this.#transport.result<CreatedToken>("POST", this.#path + pathOf`/${id}/rotate`, request);
  }

  /** Reads calls, tokens, cost and durations of one token. */
  async usage(
    id: string,
    query: Omit<UsageQuery, "tag"> = {},
    options: RequestOptions = {},
  ): Promise<Usage[]> {
    const path = this.#path + pathOf`/${id}/usage`;
    return this.#transport.result<Usage[]>("GET", path, { query: { ...query }, ...options });
  }

  /** Takes effect immediately. */
  async revoke(id: string, options: RequestOptions = {}): Promise<{ readonly id: string }> {
    return this.#transport.result<{ id: string }>("DELETE", this.#path + pathOf`/${id}`, options);
  }
}
