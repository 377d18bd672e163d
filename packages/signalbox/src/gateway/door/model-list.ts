/**
 * The listing of models at the unified doors, in OpenAI's, in Anthropic's and in Google's format: of the names of the configuration, the routes of the
 * gateway and the models of the price list those that the caller can call (`model-access.ts`). Context size and price are shown where they
 * are known.
 */
import type { ModelInfo, ModelPrice } from "@pydantic/genai-prices";
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { PriceOverrides } from "../limits/price-table.ts";
import { loadPackage, packageIdOf } from "../limits/prices-package.ts";
import type { Provider, ProviderDirectory } from "../providers/provider.ts";
import type { DynamicRoutes } from "../routes/dynamic-routes.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { ProviderKeys } from "../keys/provider-keys.ts";
import { type ListFormat, type ListingCaller, ModelAccess } from "./model-access.ts";
import { AUTO_ROUTE, type ModelNames, ROUTE_PREFIX } from "../models/model-names.ts";

export interface ModelListParts {
  readonly names: ModelNames;
  readonly providers: ProviderDirectory;
  readonly keys: ProviderKeys;
  readonly routes: DynamicRoutes;
  readonly prices: PriceOverrides;
  readonly clock: Clock;
  /** Models of the auto router. */
  readonly auto: readonly string[];
}

export interface ModelListRequest {
  /** Null for the whole list. */
  readonly model: string | null;
  readonly format: ListFormat;
  readonly query: URLSearchParams;
  readonly caller: Omit<ListingCaller, "endpoint">;
}

interface ListedModel {
  readonly id: string;
  readonly provider: string;
  /** The name of the model at the provider. */
  readonly model: string;
  readonly name: string;
  readonly contextWindow: number | null;
  /** US dollars per token. */
  readonly price: TokenPrice | null;
}

interface TokenPrice {
  readonly in: number;
  readonly out: number;
  readonly cacheRead: number | null;
  readonly cacheWrite: number | null;
}

/** Stands for the provider of a route. */
const ROUTES = "dynamic";
/** Prices with conditions may change; the list need not be more exact than this. */
const CACHE_MS = 10 * 60_000;
const PER_MILLION = 1e-6;
const DEFAULT_PAGE = 20;
const MAX_PAGE = 1000;
/** When a model was released is not known. */
const UNKNOWN_TIME = "1970-01-01T00:00:00Z";

export class ModelList {
  readonly #parts: ModelListParts;
  readonly #byProvider = new Map<string, { readonly at: number; readonly models: readonly ListedModel[] }>();

  constructor(parts: ModelListParts) {
    this.#parts = parts;
  }

  /** The body of the response; throws `not_found` for a model that is not listed. */
  answer(gateway: Gateway, { model, format, query, caller }: ModelListRequest): object {
    const access = new ModelAccess(this.#parts.keys, gateway, { ...caller, endpoint: format });
    const prefersBare = format !== "chat";
    const models = this.#list(gateway, access, prefersBare);
    const { toPage, toModel } = FORMATS[format];
    if (model === null) return toPage(models, query);
    const byId = (listed: readonly ListedModel[]) => listed.find(({ id }) => id === model);
    const found = byId(models) ?? byId(this.#list(gateway, access, !prefersBare));
    if (found === undefined) {
      throw new SignalboxError("not_found", {
        message: `Model ${model.slice(0, 128)} not found`,
        param: "model",
      });
    }
    return toModel(found);
  }

  /** With bare names where they suffice, as Anthropic's clients expect them, or with `provider/model` where it can be called. */
  #list(gateway: Gateway, access: ModelAccess, prefersBare: boolean): ListedModel[] {
    const { names, routes } = this.#parts;
    const listed = this.#providersOf(gateway, access).flatMap(({ slug }) => this.#modelsOf(slug));
    const all = new Map<string, ListedModel>();
    for (const alias of names.aliases) {
      const target = names.find(gateway.accountId, alias);
      if (target?.kind === "route" && this.#mayCallRoute(gateway, access, target.name)) {
        all.set(alias, toListed(alias, ROUTES, alias, undefined));
      }
      if (target?.kind !== "model" || !access.mayCall(target)) continue;
      const known = listed.find(
        ({ provider, model }) => provider === target.provider.slug && model === target.model,
      );
      all.set(alias, {
        ...(known ?? toListed(alias, target.provider.slug, target.model, undefined)),
        id: alias,
      });
    }
    if (this.#parts.auto.some((name) => this.#mayCall(gateway, access, name))) {
      all.set(AUTO_ROUTE, toListed(AUTO_ROUTE, ROUTES, AUTO_ROUTE, undefined));
    }
    for (const { name } of routes.list(gateway)) {
      const id = ROUTE_PREFIX + name;
      if (!all.has(id) && this.#mayCallRoute(gateway, access, name)) {
        all.set(id, toListed(id, ROUTES, id, undefined));
      }
    }
    for (const model of listed) {
      const ids = prefersBare ? [model.model, model.id] : [model.id, model.model];
      const id = ids.find((one) => this.#isReachedAs(gateway, access, one, model));
      if (id !== undefined && !all.has(id)) all.set(id, { ...model, id });
    }
    return [...all.values()];
  }

  #mayCall(gateway: Gateway, access: ModelAccess, name: string): boolean {
    const found = this.#parts.names.find(gateway.accountId, name);
    return found?.kind === "model" && access.mayCall(found);
  }

  #isReachedAs(
    gateway: Gateway,
    access: ModelAccess,
    name: string,
    { provider, model }: ListedModel,
  ): boolean {
    const found = this.#parts.names.find(gateway.accountId, name);
    return (
      found?.kind === "model" &&
      found.provider.slug === provider &&
      found.model === model &&
      access.mayCall(found)
    );
  }

  /** Whether the route has a model that the caller may use. */
  #mayCallRoute(gateway: Gateway, access: ModelAccess, name: string): boolean {
    const { routes, providers } = this.#parts;
    const route = routes.findByName(gateway, name);
    if (route === undefined || !routes.isValid(gateway.accountId, route.version)) return false;
    return [...routes.graphOf(gateway.accountId, route.version).elements.values()].some((element) => {
      if (element.type !== "model") return false;
      const provider = providers.find(gateway.accountId, element.provider);
      return provider !== undefined && access.mayCallInRoute(provider, element.model);
    });
  }

  #providersOf(gateway: Gateway, access: ModelAccess): Provider[] {
    const { providers } = this.#parts;
    return providers.sharedSlugs
      .map((slug) => providers.find(gateway.accountId, slug))
      .filter((provider) => provider !== undefined)
      .filter((provider) => access.mayHaveKey(provider));
  }

  #modelsOf(slug: string): readonly ListedModel[] {
    const now = this.#parts.clock.now();
    const cached = this.#byProvider.get(slug);
    if (cached !== undefined && Math.abs(now - cached.at) < CACHE_MS) return cached.models;
    const models = [...this.#configuredModels(slug), ...packageModels(slug, now)];
    this.#byProvider.set(slug, { at: now, models });
    return models;
  }

  /** Models with a price in the configuration. */
  #configuredModels(slug: string): ListedModel[] {
    const own = Object.hasOwn(this.#parts.prices, slug) ? this.#parts.prices[slug] : undefined;
    const models = Object.entries(own ?? {}).filter(([model]) => model !== "*");
    if (slug === "echo") models.push(["echo", { in: 0, out: 0 }]);
    return models.map(([model, price]) => ({
      ...toListed(`${slug}/${model}`, slug, model, undefined),
      price: {
        in: price.in * PER_MILLION,
        out: price.out * PER_MILLION,
        cacheRead: price.cached === undefined ? null : price.cached * PER_MILLION,
        cacheWrite: price.cacheWrite === undefined ? null : price.cacheWrite * PER_MILLION,
      },
    }));
  }
}

function packageModels(slug: string, now: number): ListedModel[] {
  const providerId = packageIdOf(slug);
  if (providerId === undefined) return [];
  const { findProvider, calcPrice } = loadPackage();
  const models = findProvider({ providerId })?.models ?? [];
  return models
    .filter(({ deprecated }) => deprecated !== true)
    .map((info) => {
      const rates = Array.isArray(info.prices)
        ? (calcPrice({}, info.id, { providerId, timestamp: new Date(now) })?.model_price ?? {})
        : info.prices;
      return { ...toListed(`${slug}/${info.id}`, slug, info.id, info), price: toPrice(rates) };
    });
}

function toListed(id: string, provider: string, model: string, info: ModelInfo | undefined): ListedModel {
  return {
    id,
    provider,
    model,
    name: info?.name ?? id,
    contextWindow: info?.context_window ?? null,
    price: null,
  };
}

function toPrice(rates: ModelPrice): TokenPrice | null {
  const [input, output] = [perToken(rates["input_mtok"]), perToken(rates["output_mtok"])];
  if (input === null && output === null) return null;
  return {
    in: input ?? 0,
    out: output ?? 0,
    cacheRead: perToken(rates["cache_read_mtok"]),
    cacheWrite: perToken(rates["cache_write_mtok"]),
  };
}

/** The price of short prompts, where it depends on the length. */
function perToken(rate: ModelPrice[string]): number | null {
  if (rate === undefined) return null;
  return (typeof rate === "number" ? rate : rate.base) * PER_MILLION;
}

function openAiList(models: readonly ListedModel[]): object {
  return { object: "list", data: models.map(toOpenAi) };
}

function toOpenAi({ id, provider, contextWindow, price }: ListedModel): object {
  return {
    id,
    object: "model",
    created: 0,
    owned_by: provider,
    ...(contextWindow === null ? {} : { context_window: contextWindow }),
    ...(price === null ? {} : { pricing: toPricing(price) }),
  };
}

/** US dollars per token as text: a number would be rounded or shown as 3e-7. */
function toPricing(price: TokenPrice): object {
  return {
    prompt: toText(price.in),
    completion: toText(price.out),
    ...(price.cacheRead === null ? {} : { input_cache_read: toText(price.cacheRead) }),
    ...(price.cacheWrite === null ? {} : { input_cache_write: toText(price.cacheWrite) }),
  };
}

function toText(price: number): string {
  return price.toFixed(12).replace(/\.?0+$/, "");
}

function toAnthropic({ id, name }: ListedModel): object {
  return { type: "model", id, display_name: name, created_at: UNKNOWN_TIME };
}

/** Anthropic's pages: `limit`, and the id after or before which a page lies. */
function anthropicPage(models: readonly ListedModel[], query: URLSearchParams): object {
  const limit = Number(query.get("limit") ?? DEFAULT_PAGE);
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new SignalboxError("gateway_malformed_request", {
      message: `limit must be a whole number from 1 to ${MAX_PAGE}`,
      param: "limit",
    });
  }
  const after = query.get("after_id");
  const before = query.get("before_id");
  const indexOf = (wanted: string) => models.findIndex(({ id }) => id === wanted);
  const end = before === null ? models.length : Math.max(0, indexOf(before));
  const start = before !== null ? Math.max(0, end - limit) : after === null ? 0 : indexOf(after) + 1;
  const page = models.slice(start, Math.min(end, start + limit));
  return {
    data: page.map(toAnthropic),
    has_more: before === null ? start + page.length < models.length : start > 0,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}

const DEFAULT_GOOGLE_PAGE = 50;

function toGoogle({ id, name, contextWindow }: ListedModel): object {
  return {
    name: `models/${id}`,
    version: "001",
    displayName: name,
    ...(contextWindow === null ? {} : { inputTokenLimit: contextWindow }),
    supportedGenerationMethods: ["generateContent", "countTokens"],
  };
}

/** Google's pages: `pageSize`, and as the token the id before the page. */
function googlePage(models: readonly ListedModel[], query: URLSearchParams): object {
  const size = Number(query.get("pageSize") ?? DEFAULT_GOOGLE_PAGE);
  if (!Number.isSafeInteger(size) || size < 1) {
    throw new SignalboxError("gateway_malformed_request", {
      message: "pageSize must be a whole number of at least 1",
      param: "pageSize",
    });
  }
  const token = query.get("pageToken") ?? "";
  const start = token === "" ? 0 : models.findIndex(({ id }) => id === token) + 1;
  const page = models.slice(start, start + Math.min(size, MAX_PAGE));
  const last = page.at(-1);
  const hasMore = start + page.length < models.length && last !== undefined;
  return { models: page.map(toGoogle), ...(hasMore ? { nextPageToken: last.id } : {}) };
}

const FORMATS: Readonly<
  Record<
    ListFormat,
    {
      readonly toModel: (model: ListedModel) => object;
      readonly toPage: (models: readonly ListedModel[], query: URLSearchParams) => object;
    }
  >
> = {
  chat: { toModel: toOpenAi, toPage: openAiList },
  messages: { toModel: toAnthropic, toPage: anthropicPage },
  gemini: { toModel: toGoogle, toPage: googlePage },
};
