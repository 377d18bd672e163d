/** The providers that all accounts share: the built-in ones, at configured addresses where there are any, and those added by the configuration. */
import type { Dialect } from "@signalbox/translate";
import { ConfigError } from "../../config/index.ts";
import { BUILT_IN_PROVIDERS } from "./built-in.ts";
import { createEchoProvider } from "./echo.ts";
import { createProvider, type Provider, type ProviderOptions, ruleForBase } from "./provider.ts";
import { API_BY_DIALECT, sameApis } from "./provider-api.ts";

export interface ConfiguredProvider {
  readonly baseUrl?: string | undefined;
  readonly dialects?: readonly Dialect[] | undefined;
  readonly region?: string | undefined;
  readonly project?: string | undefined;
  readonly tokenUrl?: string | undefined;
}

export type ConfiguredProviders = Readonly<Record<string, ConfiguredProvider>>;

/** By slug: signs and sends the requests of a provider. */
export type Signers = ReadonlyMap<string, NonNullable<Provider["answer"]>>;

export function createSharedProviders(
  configured: ConfiguredProviders,
  signers: Signers = new Map(),
): Map<string, Provider> {
  const shared = new Map<string, Provider>([["echo", createEchoProvider()]]);
  for (const definition of BUILT_IN_PROVIDERS) {
    const options = toOptions(configured[definition.slug] ?? {});
    const answer = signers.get(definition.slug);
    shared.set(
      definition.slug,
      createProvider(definition, answer === undefined ? options : { ...options, answer }),
    );
  }
  for (const [slug, own] of Object.entries(configured)) {
    if (shared.has(slug)) continue;
    const { baseUrl } = own;
    if (baseUrl === undefined) {
      throw new ConfigError(
        `providers.${slug}.baseUrl: expected an address, because ${slug} is not built in`,
      );
    }
    shared.set(slug, createProvider({ slug, baseUrl, rule: ruleForBase(baseUrl) }, toOptions(own)));
  }
  return shared;
}

function toOptions({ baseUrl, dialects, region, project }: ConfiguredProvider): ProviderOptions {
  return {
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(dialects === undefined ? {} : { apis: sameApis(dialects.map((dialect) => API_BY_DIALECT[dialect])) }),
    place: { region: region ?? null, project: project ?? null },
  };
}
