/** The list prices of `@pydantic/genai-prices`. Loading the data takes about 50 ms, so it waits for the first use. */
import { createRequire } from "node:module";
import type { calcPrice, findProvider } from "@pydantic/genai-prices";

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
};

/** The provider's id in the package; undefined for providers without list prices. */
export function packageIdOf(provider: string): string | undefined {
  return Object.hasOwn(PACKAGE_IDS, provider) ? PACKAGE_IDS[provider] : undefined;
}

interface PricesPackage {
  readonly calcPrice: typeof calcPrice;
  readonly findProvider: typeof findProvider;
}

let pricesPackage: PricesPackage | undefined;

export function isPackageLoaded(): boolean {
  return pricesPackage !== undefined;
}

export function loadPackage(): PricesPackage {
  pricesPackage ??= createRequire(import.meta.url)("@pydantic/genai-prices") as PricesPackage;
  return pricesPackage;
}
