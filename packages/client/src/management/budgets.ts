import { changeSettings } from "./change.ts";
import type { SpendRule } from "./gateways.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

/** US dollars per million tokens, and per thousand searches. */
export interface ModelPrice {
  readonly in: number;
  readonly out: number;
  readonly cached?: number;
  readonly cacheWrite?: number;
  readonly cacheWrite1h?: number;
  readonly reasoning?: number;
  readonly audioIn?: number;
  readonly audioOut?: number;
  readonly imageIn?: number;
  readonly imageOut?: number;
  readonly searches?: number;
  readonly fileSearches?: number;
  /** An hour of sound. */
  readonly audioHour?: number;
  /** A thousand pages. */
  readonly pages?: number;
  /** A picture. */
  readonly image?: number;
  /** A million characters that are spoken. */
  readonly characters?: number;
  /** A thousand searches of rankings. */
  readonly rankings?: number;
  /** Factors of service tiers. */
  readonly tiers?: Readonly<Partial<Record<"flex" | "batch" | "priority" | "ultrafast", number>>>;
}

/** By provider, then by model; `*` applies to all other models of the provider. */
export type PriceTable = Readonly<Record<string, Readonly<Record<string, ModelPrice>>>>;

export interface FoundPrice {
  readonly provider: string;
  readonly model: string;
  readonly source: "account" | "configuration" | "list" | "unknown";
  readonly price: Readonly<Record<string, unknown>> | null;
}

/** All known prices, where they come from, and the models in use that have none. */
export interface PriceList {
  readonly list: {
    readonly source: "release" | "address";
    readonly read_at: string | null;
    readonly sha256: string | null;
    readonly held: readonly {
      readonly provider: string;
      readonly model: string;
      readonly from: unknown;
      readonly to: unknown;
    }[];
  };
  readonly prices: readonly {
    readonly provider: string;
    readonly model: string;
    readonly source: "account" | "configuration" | "list";
    readonly price: Readonly<Record<string, unknown>>;
  }[];
  readonly missing: readonly { readonly provider: string; readonly model: string; readonly calls: number }[];
}

/** Usage that was measured elsewhere. */
export interface BookedUsage {
  readonly provider: string;
  readonly model: string;
  /** With cached input and input that was written to the provider's cache. */
  readonly tokens_in?: number;
  readonly tokens_out?: number;
  readonly tokens_in_cached?: number;
  readonly tokens_in_cache_write?: number;
  readonly tokens_out_reasoning?: number;
  readonly searches?: number;
  readonly seconds?: number;
  readonly pages?: number;
  readonly characters?: number;
  readonly images?: number;
  readonly tier?: string;
  /** US dollars. Default: by the price of the model. */
  readonly cost?: number;
  /** The token that is charged. Default: that of the caller. */
  readonly token_id?: string;
  readonly metadata?: Readonly<Record<string, string | number | boolean | null>>;
  readonly event_id?: string;
  readonly duration_ms?: number;
}

/** What of a limit is used. */
export interface BudgetState {
  readonly rule: string;
  readonly type: "cost" | "requests" | "tokens" | "parallel";
  readonly limit: number;
  readonly window: string;
  readonly is_soft: boolean;
  readonly partition: string | null;
  readonly used: number;
  readonly reserved: number;
  readonly remaining: number;
  readonly reset_at: string | null;
}

/** What of a limit is used, and whose limit it is: of the account if both ids are null. */
export interface OwnedBudgetState extends BudgetState {
  readonly gateway_id: string | null;
  readonly token_id: string | null;
  readonly token_name: string | null;
}

export interface Credit {
  readonly rule: string;
  readonly limit: number;
}

/** Prices, limits and credit of one account, and what is left of its budgets. */
export class BudgetsApi {
  readonly #transport: Transport;
  readonly #account: string;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#account = accountPath;
    this.#path = `${accountPath}/ai-gateway`;
  }

  /** The account's own prices. */
  async prices(options: RequestOptions = {}): Promise<PriceTable> {
    const { prices } = await this.#transport.result<{ prices: PriceTable }>(
      "GET",
      `${this.#path}/prices`,
      options,
    );
    return prices;
  }

  /** The price that a call of the model has. */
  async findPrice(provider: string, model: string, options: RequestOptions = {}): Promise<FoundPrice> {
    const query = new URLSearchParams({ provider, model });
    const path = `${this.#path}/prices?${query.toString()}`;
    return (await this.#transport.result<{ found: FoundPrice }>("GET", path, options)).found;
  }

  /** All known prices of a provider, or of all. */
  priceList(provider?: string, options: RequestOptions = {}): Promise<PriceList> {
    const query = provider === undefined ? "" : `?${new URLSearchParams({ provider }).toString()}`;
    return this.#transport.result<PriceList>("GET", `${this.#path}/prices/list${query}`, options);
  }

  /** Books usage that was measured elsewhere: a row in the call log, and a charge of the limits. Sent twice, it counts twice. */
  bookUsage(
    gatewayId: string,
    usage: BookedUsage,
    options: RequestOptions = {},
  ): Promise<{ readonly id: string; readonly cost: number }> {
    const path = this.#path + pathOf`/gateways/${gatewayId}/usage`;
    return this.#transport.result("POST", path, { body: usage, ...options });
  }

  async setPrices(prices: PriceTable, options: RequestOptions = {}): Promise<PriceTable> {
    const request = { body: { prices }, ...options };
    return (await this.#transport.result<{ prices: PriceTable }>("PUT", `${this.#path}/prices`, request))
      .prices;
  }

  /** Changes the account's own prices; changes of other clients are kept. */
  async changePrices(
    change: (prices: PriceTable) => PriceTable,
    options: RequestOptions = {},
  ): Promise<PriceTable> {
    const toBody = ({ prices }: { prices: PriceTable }) => ({ prices: change(prices) });
    return (await changeSettings(this.#transport, "PUT", `${this.#path}/prices`, toBody, options)).prices;
  }

  async deletePrices(options: RequestOptions = {}): Promise<void> {
    await this.#transport.result("DELETE", `${this.#path}/prices`, options);
  }

  /** The limits of the account, over all of its gateways. */
  async limits(options: RequestOptions = {}): Promise<readonly SpendRule[]> {
    return (await this.#transport.result<{ rules: SpendRule[] }>("GET", `${this.#path}/limits`, options))
      .rules;
  }

  async setLimits(rules: readonly SpendRule[], options: RequestOptions = {}): Promise<readonly SpendRule[]> {
    const request = { body: { rules }, ...options };
    return (await this.#transport.result<{ rules: SpendRule[] }>("PUT", `${this.#path}/limits`, request))
      .rules;
  }

  /** Changes the limits of the account; changes of other clients, and credit that they add, are kept. */
  async changeLimits(
    change: (rules: readonly SpendRule[]) => readonly SpendRule[],
    options: RequestOptions = {},
  ): Promise<readonly SpendRule[]> {
    const toBody = ({ rules }: { rules: readonly SpendRule[] }) => ({ rules: change(rules) });
    return (await changeSettings(this.#transport, "PUT", `${this.#path}/limits`, toBody, options)).rules;
  }

  /** What is left of the limits of the account, of a gateway, or of a token. */
  async state(
    of: { readonly gatewayId?: string | undefined; readonly tokenId?: string | undefined } = {},
    options: RequestOptions = {},
  ): Promise<readonly BudgetState[]> {
    const path = `${this.#pathOf(of)}/budgets`;
    return (await this.#transport.result<{ budgets: BudgetState[] }>("GET", path, options)).budgets;
  }

  /**
   * The limits of which the largest share is used: of the account, of its gateways and, for callers with `tokens.edit`, of its tokens. Without those
   * on parallel calls.
   */
  async mostUsed(
    wanted: { readonly of?: "account" | "gateway" | "token"; readonly limit?: number } = {},
    options: RequestOptions = {},
  ): Promise<readonly OwnedBudgetState[]> {
    const query = new URLSearchParams();
    if (wanted.of !== undefined) query.set("of", wanted.of);
    if (wanted.limit !== undefined) query.set("limit", String(wanted.limit));
    const path = `${this.#path}/budgets/most-used${query.size === 0 ? "" : `?${query.toString()}`}`;
    return (await this.#transport.result<{ budgets: OwnedBudgetState[] }>("GET", path, options)).budgets;
  }

  /** Adds prepaid credit to a limit without a window. */
  async addCredit(
    amount: number,
    of: {
      readonly gatewayId?: string | undefined;
      readonly tokenId?: string | undefined;
      readonly rule?: string | undefined;
    } = {},
    options: RequestOptions = {},
  ): Promise<Credit> {
    const base =
      of.gatewayId === undefined && of.tokenId === undefined ? `${this.#path}/limits` : this.#pathOf(of);
    const body = of.rule === undefined ? { amount } : { amount, rule: of.rule };
    return this.#transport.result<Credit>("POST", `${base}/credit`, { body, ...options });
  }

  #pathOf(of: { readonly gatewayId?: string | undefined; readonly tokenId?: string | undefined }): string {
    if (of.tokenId !== undefined) return this.#account + pathOf`/tokens/${of.tokenId}`;
    return of.gatewayId === undefined ? this.#path : this.#path + pathOf`/gateways/${of.gatewayId}`;
  }
}
