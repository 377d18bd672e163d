/** Finds a provider by its slug: built in, added by the configuration, or a custom provider of the account (`custom-<slug>`). */
import { BUILT_IN_PROVIDERS } from "./built-in.ts";
import { createEchoProvider } from "./echo.ts";
import { createProvider, openAiPath, type PathRule, type Provider, samePath } from "./provider.ts";

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

  /** Slugs of the providers that all accounts share. */
  get sharedSlugs(): string[] {
    return [...this.#shared.keys()].sort();
  }
}

/** A base address that ends in the version is taken for OpenAI-compatible; others receive paths unchanged. */
export function ruleForBase(baseUrl: string): PathRule {
  return /\/v1\/?$/.test(new URL(baseUrl).pathname) ? openAiPath : samePath;
}
