/**
 * A provider: the address of its API, how a path below `/v1/{account}/{gateway}/{slug}/` becomes a path of that API, and which headers
 * carry its credential. The tables in built-in.ts define the providers.
 */
import {
  type Origin,
  toOrigin,
  type UpstreamExchange,
  type UpstreamHandler,
  type UpstreamRequest,
} from "../../engines/relay/index.ts";
import {
  type ApiRule,
  OPENAI_SHAPED,
  type ProviderApis,
  type ProviderPlace,
  UNVERSIONED_OPENAI_SHAPED,
} from "./provider-api.ts";

export interface Provider {
  readonly slug: string;
  /** Headers that carry the caller's credential, in lower case; a stored key is sent in the first one. */
  readonly credentialHeaders: readonly string[];
  /** The value of the first credential header for a stored key. */
  readonly toCredential: (key: string) => string;
  /** Whether the API also takes the key as the query parameter `key`, as Google's do. */
  readonly acceptsKeyInQuery: boolean;
  /** Headers that are sent with every request: name, value, name, value, … Only custom providers have them. */
  readonly extraHeaders: readonly string[];
  /** The upstream address of a path; throws `gateway_malformed_request` for a path that has none. */
  locate(path: string, accountId: string): Location;
  /** The model that the path names; null for APIs that name it in the body. */
  modelInPath(path: string): string | null;
  /** The APIs that the unified doors use for a model. */
  apisFor(model: string): ProviderApis;
  /** The address of a path below the provider's host, without the base path of its API and the path rule. */
  locateAtHost(path: string): Location;
  /**
   * Whether a caller's path can name a host that belongs to another customer of the provider. A stored key is then not sent, because
   * the caller could choose who receives it.
   */
  readonly isHostOfCaller: boolean;
  /** Present when the provider answers inside this process, or its requests are signed as they are sent. */
  readonly answer?: (request: UpstreamRequest, handler: UpstreamHandler) => UpstreamExchange;
}

export interface Location {
  readonly origin: Origin;
  /** Path without query, starting with `/`. */
  readonly path: string;
}

/** An entry of the provider tables; `createProvider` turns it into a `Provider`. */
export interface ProviderDefinition {
  readonly slug: string;
  /** Base address with its path. The host may contain `{0}`, which the path rule fills from the request's path (a region, a resource). */
  readonly baseUrl: string;
  readonly credentialHeaders?: readonly string[];
  readonly toCredential?: (key: string) => string;
  readonly acceptsKeyInQuery?: boolean;
  readonly rule: PathRule;
  readonly modelInPath?: (path: string) => string | null;
  /** Default: OpenAI-shaped. */
  readonly apis?: ApiRule;
  /** `{0}` names a customer of the provider. */
  readonly hasCustomerHosts?: boolean;
}

/** Maps the path after the provider segment, without leading slash and query, to a path after the base address. */
export type PathRule = (path: string, accountId: string) => RoutedPath;

export interface RoutedPath {
  readonly path: string;
  /** The value of `{0}` in the host. */
  readonly hostPart?: string;
}

export function bearer(key: string): string {
  return `Bearer ${key}`;
}

export function bare(key: string): string {
  return key;
}

export interface ProviderOptions {
  /** Replaces the address of the definition. If it has no path, the path of the definition is kept. */
  readonly baseUrl?: string;
  readonly mayBePrivate?: boolean;
  readonly extraHeaders?: readonly string[];
  readonly place?: ProviderPlace;
  /** Replaces the APIs of the definition. */
  readonly apis?: ApiRule;
  readonly answer?: Provider["answer"];
}

const NO_PLACE: ProviderPlace = { region: null, project: null };

/** Origins made from request paths (regions, resources) that are cached; callers choose them. */
const MAX_CACHED_ORIGINS = 64;

export function createProvider(definition: ProviderDefinition, options: ProviderOptions = {}): Provider {
  const mayBePrivate = options.mayBePrivate ?? true;
  const template = options.baseUrl ?? definition.baseUrl;
  const own = new URL(template.replace("{0}", "x"));
  const basePath =
    options.baseUrl !== undefined && own.pathname === "/"
      ? new URL(definition.baseUrl.replace("{0}", "x")).pathname
      : own.pathname;
  const hostPath =
    options.baseUrl === undefined
      ? ""
      : pathBefore(own.pathname, new URL(definition.baseUrl.replace("{0}", "x")).pathname);
  const prefix = basePath.endsWith("/") ? basePath : `${basePath}/`;
  const fixedOrigin = template.includes("{0}") ? null : toOrigin(own, mayBePrivate);
  const origins = new Map<string, Origin>();
  const originOf = (hostPart: string): Origin => {
    if (fixedOrigin !== null) return fixedOrigin;
    let origin = origins.get(hostPart);
    if (origin === undefined) {
      if (origins.size >= MAX_CACHED_ORIGINS) origins.clear();
      origin = toOrigin(new URL(template.replace("{0}", hostPart)), mayBePrivate);
      origins.set(hostPart, origin);
    }
    return origin;
  };
  const apis =
    options.apis ??
    definition.apis ??
    (definition.rule === openAiPath ? OPENAI_SHAPED : UNVERSIONED_OPENAI_SHAPED);
  const place = options.place ?? NO_PLACE;
  return {
    slug: definition.slug,
    credentialHeaders: definition.credentialHeaders ?? ["authorization"],
    toCredential: definition.toCredential ?? bearer,
    acceptsKeyInQuery: definition.acceptsKeyInQuery ?? false,
    extraHeaders: options.extraHeaders ?? [],
    locate(path, accountId) {
      const routed = definition.rule(path, accountId);
      return { origin: originOf(routed.hostPart ?? ""), path: prefix + routed.path };
    },
    locateAtHost: (path) => ({ origin: originOf(""), path: hostPath + path }),
    modelInPath: definition.modelInPath ?? (() => null),
    apisFor: (model) => apis(model, place),
    isHostOfCaller: definition.hasCustomerHosts === true && fixedOrigin === null,
    ...(options.answer === undefined ? {} : { answer: options.answer }),
  };
}

/**
 * What a configured address has before the path of the provider's API: `/proxy` of `/proxy/v1`, if the API is at `/v1`, and of `/proxy` itself. An
 * address may also end within the path of the API.
 */
function pathBefore(configured: string, ofApi: string): string {
  const own = configured.split("/").filter((segment) => segment !== "");
  const known = ofApi.split("/").filter((segment) => segment !== "");
  for (let shared = Math.min(own.length, known.length); shared > 0; shared--) {
    const isEnd = known.slice(0, shared).every((segment, i) => segment === own[own.length - shared + i]);
    if (isEnd)
      return own
        .slice(0, own.length - shared)
        .map((segment) => `/${segment}`)
        .join("");
  }
  return own.map((segment) => `/${segment}`).join("");
}

const VERSION = "v1/";
/** OpenAI-compatible APIs whose base address ends in the version: `x` and `v1/x` are the same path. */
export const openAiPath: PathRule = (path) => ({ path: withoutVersion(path) });

/** The path is forwarded unchanged. */
export const samePath: PathRule = (path) => ({ path });

/** OpenAI-compatible endpoints are below `prefix`; all other paths belong to the provider's native API. */
export function openAiBelow(prefix: string, endpoints: readonly string[] = OPENAI_ENDPOINTS): PathRule {
  const known = new Set(endpoints);
  return (path) => {
    const plain = withoutVersion(path);
    return { path: known.has(plain) ? `${prefix}${plain}` : path };
  };
}

export const OPENAI_ENDPOINTS = ["chat/completions", "completions", "embeddings", "responses", "models"];

export function withoutVersion(path: string): string {
  return path.startsWith(VERSION) ? path.slice(VERSION.length) : path;
}

export const CUSTOM_PREFIX = "custom-";

/** Finds a provider by its slug: one that all accounts share, or a custom provider of the account (`custom-<slug>`). */
export class ProviderDirectory {
  readonly #shared: ReadonlyMap<string, Provider>;
  readonly #findCustom: (accountId: string, slug: string) => Provider | undefined;

  constructor(
    shared: ReadonlyMap<string, Provider>,
    findCustom: (accountId: string, slug: string) => Provider | undefined,
  ) {
    this.#shared = shared;
    this.#findCustom = findCustom;
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
