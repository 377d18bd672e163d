/** The list prices of `@pydantic/genai-prices`. Loading the data takes about 50 ms, so it waits for the first use. */
import { createRequire } from "node:module";
import { correctedPrices } from "./corrected-prices.ts";
import { furtherPrices } from "./further-prices.ts";
import { listedNameOf } from "./listed-names.ts";
import type {
  calcPrice,
  findProvider,
  ModelPrice,
  Provider,
  updatePrices,
  waitForUpdate,
} from "@pydantic/genai-prices";

/** Provider slug → provider id of the package. Other providers have no list prices. */
const PACKAGE_IDS: Readonly<Record<string, string>> = {
  openai: "openai",
  anthropic: "anthropic",
  "google-ai-studio": "google",
  "google-vertex-ai": "google",
  "azure-openai": "azure",
  "aws-bedrock": "aws",
  "workers-ai": "cloudflare",
  groq: "groq",
  grok: "x-ai",
  mistral: "mistral",
  deepseek: "deepseek",
  "perplexity-ai": "perplexity",
  cohere: "cohere",
  cerebras: "cerebras",
  openrouter: "openrouter",
  fireworks: "fireworks",
  together: "together",
  baseten: "baseten",
  minimax: "minimax",
  novita: "novita",
  ovhcloud: "ovhcloud",
  voyage: "voyageai",
  zai: "zai",
};

export const LISTED_PROVIDERS: readonly string[] = Object.keys(PACKAGE_IDS);

/** The provider's id in the package; undefined for providers without list prices. */
export function packageIdOf(provider: string): string | undefined {
  return Object.hasOwn(PACKAGE_IDS, provider) ? PACKAGE_IDS[provider] : undefined;
}

interface PricesPackage {
  readonly calcPrice: typeof calcPrice;
  readonly findProvider: typeof findProvider;
  readonly updatePrices: typeof updatePrices;
  readonly waitForUpdate: typeof waitForUpdate;
}

let pricesPackage: PricesPackage | undefined;

export function isPackageLoaded(): boolean {
  return pricesPackage !== undefined;
}

export function loadPackage(): PricesPackage {
  pricesPackage ??= createRequire(import.meta.url)("@pydantic/genai-prices") as PricesPackage;
  return pricesPackage;
}

/** The whole list in use: that of the release, or a newer one. */
export async function presentPriceList(): Promise<readonly Provider[]> {
  return (await loadPackage().waitForUpdate()) ?? [];
}

/** Uses another list from now on, for the whole process. Throws for one that the package refuses. */
export function usePriceList(providers: readonly Provider[]): void {
  loadPackage().updatePrices(({ setProviderData }) => setProviderData([...providers]));
}

/** The prices of a model, with the names of the package. */
export interface ListPrices {
  readonly rates: ModelPrice;
  readonly contextWindow: number | null;
  /** They depend on the time. */
  readonly isConditional: boolean;
}

/** Null for a model that the package does not know. `packageId` is of `packageIdOf`. */
export function findListPrices(packageId: string, model: string, now: number): ListPrices | null {
  const exact = findByName(packageId, model, now);
  const listed = exact === null ? listedNameOf(packageId, model) : null;
  if (listed === null) return exact;
  const found = findByName(packageId, listed.name, now);
  return found === null ? null : { ...found, rates: listed.adjust(found.rates) };
}

function findByName(packageId: string, model: string, now: number): ListPrices | null {
  const found = loadPackage().calcPrice({}, model, { providerId: packageId, timestamp: new Date(now) });
  const corrected = correctedPrices(packageId, model, found?.model_price ?? null, now);
  if (corrected !== null) {
    const contextWindow = found?.model.context_window ?? null;
    return { rates: complete(packageId, model, corrected), contextWindow, isConditional: true };
  }
  const further = furtherPrices(packageId, model);
  if (found === null) {
    return further === null ? null : { rates: further, contextWindow: null, isConditional: false };
  }
  return {
    rates: { ...further, ...complete(packageId, found.model.id, found.model_price) },
    contextWindow: found.model.context_window ?? null,
    isConditional: Array.isArray(found.model.prices),
  };
}

/** A model without any rate is one whose price nobody has entered, except where its name, or its maker, says that it is free. */
const FREE = /:free$|^moderation$/;

/** Adds rates that the package leaves out. */
function complete(packageId: string, id: string, rates: ModelPrice): ModelPrice {
  if (Object.keys(rates).length === 0) return FREE.test(id) ? { input_mtok: 0, output_mtok: 0 } : rates;
  const tools = TOOLS.find(({ ids, models }) => ids.includes(packageId) && models.test(id));
  return tools === undefined ? rates : { ...tools.rates, ...rates };
}

/**
 * Published prices of tools that the provider runs, by the thousand: searches (of Gemini before 3: answers with searches), containers for code by the
 * gigabyte of memory, of Anthropic for its shortest time of five minutes, and answers with places of Google Maps.
 */
const TOOLS: readonly {
  readonly ids: readonly string[];
  readonly models: RegExp;
  readonly rates: ModelPrice;
}[] = [
  { ids: ["google"], models: /gemini-[12]\b/, rates: { web_searches_kcount: 35, map_answers_kcount: 25 } },
  { ids: ["google"], models: /gemini/, rates: { web_searches_kcount: 14, map_answers_kcount: 25 } },
  { ids: ["google", "azure"], models: /claude/, rates: { web_searches_kcount: 10 } },
  {
    ids: ["anthropic"],
    models: /claude/,
    rates: { web_searches_kcount: 10, code_sessions_kcount: 50 / 12 },
  },
  {
    ids: ["openai", "azure"],
    models: /^(?:gpt-|o\d)/,
    rates: { web_searches_kcount: 10, storage_searches_kcount: 2.5, code_sessions_kcount: 30 },
  },
];
