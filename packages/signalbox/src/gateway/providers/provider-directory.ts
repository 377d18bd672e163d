/** Finds the provider a path names: built in, added by the configuration, or an account's own (`custom-<slug>`). */
import { BUILT_IN_PROVIDERS } from "./built-in.ts";
import { createProvider } from "./create-provider.ts";
import { createEchoProvider } from "./echo.ts";
import { openAiPath, samePath } from "./path-rules.ts";
import type { PathRule, Provider } from "./provider.ts";

export type ConfiguredProviders = Readonly<Record<string, { readonly baseUrl: string }>>;

export const CUSTOM_PREFIX = "custom-";

export class ProviderDirectory {
  readonly #shared = new Map<string, Provider>();
  readonly #findCustom: (accountId: string, slug: string) => Provider | undefined;

  constructor(
    configured: ConfiguredProviders,
    findCustom: (accountId: string, slug: string) => Provider | undefined,
  ) {
    this.#findCustom = findCustom;
    this.#shared.set("echo", createEchoProvider());
    for (const definition of BUILT_IN_PROVIDERS) {
      const baseUrl = configured[definition.slug]?.baseUrl;
      this.#shared.set(definition.slug, createProvider(definition, baseUrl === undefined ? {} : { baseUrl }));
    }
    for (const [slug, { baseUrl }] of Object.entries(configured)) {
      if (this.#shared.has(slug)) continue;
      this.#shared.set(slug, createProvider({ slug, baseUrl, rule: ruleForBase(baseUrl) }));
    }
  }

  find(accountId: string, slug: string): Provider | undefined {
    return (
      this.#shared.get(slug) ??
      (slug.startsWith(CUSTOM_PREFIX)
        ? this.#findCustom(accountId, slug.slice(CUSTOM_PREFIX.length))
        : undefined)
    );
  }

  /** Slugs that every account can use. */
  get sharedSlugs(): string[] {
    return [...this.#shared.keys()].sort();
  }
}

/** A base that ends in the version is OpenAI-shaped by all appearances; any other takes paths as they come. */
export function ruleForBase(baseUrl: string): PathRule {
  return /\/v1\/?$/.test(new URL(baseUrl).pathname) ? openAiPath : samePath;
}
