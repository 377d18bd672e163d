/**
 * Bindings that this server does not have. Each is an object whose use throws an error with the name of the binding; a program that declares a
 * binding and does not use it runs.
 */

export interface MissingBinding {
  readonly binding: string;
  /** What the binding would be, e.g. `vectorize`. */
  readonly kind: string;
}

/** The places of a wrangler file that declare such bindings, and the key of the name in each. */
const PLACES: readonly (readonly [path: string, nameKey: string, kind: string])[] = [
  ["kv_namespaces", "binding", "kv namespace"],
  ["r2_buckets", "binding", "r2 bucket"],
  ["d1_databases", "binding", "d1 database"],
  ["queues.producers", "binding", "queue"],
  ["vectorize", "binding", "vectorize index"],
  ["browser", "binding", "browser"],
  ["send_email", "name", "email sender"],
  ["hyperdrive", "binding", "hyperdrive"],
  ["analytics_engine_datasets", "binding", "analytics engine"],
  ["images", "binding", "images"],
  ["media", "binding", "media"],
  ["stream", "binding", "stream"],
  ["mtls_certificates", "binding", "mtls certificate"],
  ["dispatch_namespaces", "binding", "dispatch namespace"],
  ["secrets_store_secrets", "binding", "secrets store"],
  ["pipelines", "binding", "pipeline"],
  ["ratelimits", "name", "rate limit"],
  ["unsafe.bindings", "name", "unsafe binding"],
  ["vpc_services", "binding", "vpc service"],
  ["ai_search", "binding", "ai search"],
  ["ai_search_namespaces", "binding", "ai search"],
  ["containers", "name", "container"],
  ["artifacts", "binding", "artifacts"],
  ["flagship", "binding", "feature flags"],
];

/** The kinds of bindings that are not available, for the documentation. */
export const MISSING_KINDS: readonly string[] = [...new Set(PLACES.map(([, , kind]) => kind))];

export function findMissingBindings(file: unknown): MissingBinding[] {
  return PLACES.flatMap(([path, nameKey, kind]) => {
    const found = path.split(".").reduce<unknown>(memberOf, file);
    const items: readonly unknown[] = Array.isArray(found) ? found : [found];
    return items.flatMap((item) => {
      const binding = memberOf(item, nameKey);
      return typeof binding === "string" ? [{ binding, kind }] : [];
    });
  });
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}

/**
 * The value in `env`. Properties that the language, a promise or a logger reads on any object are undefined; every other read, and every call,
 * throws. `in` finds nothing, so that code that looks for object namespaces passes over it.
 */
export function createMissingBinding({ binding, kind }: MissingBinding): object {
  const fail = (): never => {
    throw new Error(`binding ${binding} (${kind}) is not available on Signalbox`);
  };
  return new Proxy(() => undefined, {
    get: (_target, property) => (typeof property === "symbol" || QUIET.has(property) ? undefined : fail()),
    has: () => false,
    set: fail,
    apply: fail,
    construct: fail,
  });
}

const QUIET: ReadonlySet<string> = new Set([
  "then",
  "toJSON",
  "constructor",
  "prototype",
  "asymmetricMatch",
  "nodeType",
]);
