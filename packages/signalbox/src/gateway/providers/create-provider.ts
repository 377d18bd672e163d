/** Turns a provider's definition, and the address the operator may have set for it, into the object the request path uses. */
import { type Origin, toOrigin } from "../../engines/relay/index.ts";
import { bearer, type Provider, type ProviderDefinition } from "./provider.ts";

export interface ProviderOptions {
  /** Replaces the definition's address. Without a path it keeps the definition's path, so that host and port can be swapped alone. */
  readonly baseUrl?: string;
  readonly mayBePrivate?: boolean;
  readonly extraHeaderLines?: string;
}

/** Hosts made from request paths (regions, resources): a few are common, the rest are not worth keeping. */
const MAX_KEPT_ORIGINS = 64;

export function createProvider(definition: ProviderDefinition, options: ProviderOptions = {}): Provider {
  const mayBePrivate = options.mayBePrivate ?? true;
  const template = options.baseUrl ?? definition.baseUrl;
  const own = new URL(template.replace("{0}", "x"));
  const basePath =
    options.baseUrl !== undefined && own.pathname === "/"
      ? new URL(definition.baseUrl.replace("{0}", "x")).pathname
      : own.pathname;
  const prefix = basePath.endsWith("/") ? basePath : `${basePath}/`;
  const fixedOrigin = template.includes("{0}") ? null : toOrigin(own, mayBePrivate);
  const origins = new Map<string, Origin>();
  const originOf = (hostPart: string): Origin => {
    if (fixedOrigin !== null) return fixedOrigin;
    let origin = origins.get(hostPart);
    if (origin === undefined) {
      if (origins.size >= MAX_KEPT_ORIGINS) origins.clear();
      origin = toOrigin(new URL(template.replace("{0}", hostPart)), mayBePrivate);
      origins.set(hostPart, origin);
    }
    return origin;
  };
  return {
    slug: definition.slug,
    usage: definition.usage ?? "openai",
    credentialHeaders: definition.credentialHeaders ?? ["authorization"],
    toCredential: definition.toCredential ?? bearer,
    extraHeaderLines: options.extraHeaderLines ?? "",
    locate(path, accountId) {
      const routed = definition.rule(path, accountId);
      return { origin: originOf(routed.hostPart ?? ""), path: prefix + routed.path };
    },
    modelInPath: definition.modelInPath ?? (() => null),
  };
}
