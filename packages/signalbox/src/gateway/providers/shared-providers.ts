/** The providers that all accounts share: the built-in ones, at configured addresses where there are any, and those added by the configuration. */
import { BUILT_IN_PROVIDERS } from "./built-in.ts";
import { createEchoProvider } from "./echo.ts";
import { createProvider, type Provider, ruleForBase } from "./provider.ts";

export type ConfiguredProviders = Readonly<Record<string, { readonly baseUrl: string }>>;

export function createSharedProviders(configured: ConfiguredProviders): Map<string, Provider> {
  const shared = new Map<string, Provider>([["echo", createEchoProvider()]]);
  for (const definition of BUILT_IN_PROVIDERS) {
    const baseUrl = configured[definition.slug]?.baseUrl;
    shared.set(definition.slug, createProvider(definition, baseUrl === undefined ? {} : { baseUrl }));
  }
  for (const [slug, { baseUrl }] of Object.entries(configured)) {
    if (!shared.has(slug)) shared.set(slug, createProvider({ slug, baseUrl, rule: ruleForBase(baseUrl) }));
  }
  return shared;
}
