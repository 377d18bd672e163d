/**
 * Decides which models a caller can call, for the listing: a model is listed only if a call of the same caller would be planned and would
 * have a key. The rules are those of a call: the token's models, providers and kinds of calls (`keys/policy-use.ts`), whose key a call takes
 * (`plan/model-request.ts`), and who may use stored keys (`keys/caller-token.ts`).
 */
import { SignalboxError } from "@signalbox/protocol";
import type { TokenPolicy } from "../../accounts/index.ts";
import { ProviderKeyPool } from "../keys/provider-key-pool.ts";
import { mayUseStoredKeys } from "../keys/caller-token.ts";
import { allowsModel } from "../keys/policy-use.ts";
import { homeOf } from "../plan/model-request.ts";
import { CUSTOM_PREFIX, type Provider } from "../providers/provider.ts";
import { NO_APIS, type ProviderApis } from "../providers/provider-api.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { ProviderKeys } from "../keys/provider-keys.ts";
import type { ModelTarget } from "../models/model-target.ts";

/** OpenAI's, Anthropic's or Google's. */
export type ListFormat = "chat" | "messages" | "gemini";

export interface ListingCaller {
  /** The dialect of the listing; a key in the headers is a key of its provider. */
  readonly endpoint: ListFormat;
  /** What the caller's token may use; null without limits. */
  readonly policy: TokenPolicy | null;
  readonly isAuthenticated: boolean;
  /** The caller has sent a key of a provider. */
  readonly hasOwnKey: boolean;
  /** The stored key that the caller names. */
  readonly keyAlias: string | undefined;
}

/** They serve models without a key. */
const KEYLESS: ReadonlySet<string> = new Set(["echo", "ollama", "vllm", "lmstudio"]);
const CALLS = ["chat", "responses", "messages", "generate_content"] as const;

export class ModelAccess {
  readonly #keys: ProviderKeys;
  readonly #gateway: Gateway;
  readonly #caller: ListingCaller;
  readonly #pools = new Map<string, ProviderKeyPool | null | "unknown alias">();

  constructor(keys: ProviderKeys, gateway: Gateway, caller: ListingCaller) {
    this.#keys = keys;
    this.#gateway = gateway;
    this.#caller = caller;
  }

  /** Whether a model of the provider can have a key; spares the look at each model of a provider without one. */
  mayHaveKey(provider: Provider): boolean {
    return (
      this.#poolOf(provider) instanceof ProviderKeyPool || needsNoKey(provider) || this.#isOwnKeyFor(provider)
    );
  }

  mayCall({ provider, model, isExplicit }: ModelTarget): boolean {
    if (!this.#isAllowed(provider, model)) return false;
    const { hasOwnKey, keyAlias } = this.#caller;
    if (hasOwnKey && keyAlias === undefined && (isExplicit || this.#isOwnKeyFor(provider))) {
      // The call takes the caller's key. That it is a key of another provider than that of the SDK is not known.
      return needsNoKey(provider) || this.#isOwnKeyFor(provider);
    }
    return this.#hasStoredKey(provider, model);
  }

  /** A call of a route never takes the caller's key. */
  mayCallInRoute(provider: Provider, model: string): boolean {
    return this.#isAllowed(provider, model) && this.#hasStoredKey(provider, model);
  }

  #isAllowed(provider: Provider, model: string): boolean {
    const { policy } = this.#caller;
    if (provider.isHostOfCaller || (policy !== null && !allowsModel(policy, provider.slug, model)))
      return false;
    const kinds = policy?.routes ?? [];
    const { calls, embeddings } = apisOf(provider, model);
    return (
      (calls.length > 0 && (kinds.length === 0 || CALLS.some((kind) => kinds.includes(kind)))) ||
      (embeddings !== null && (kinds.length === 0 || kinds.includes("embeddings")))
    );
  }

  #hasStoredKey(provider: Provider, model: string): boolean {
    const pool = this.#poolOf(provider);
    if (pool === "unknown alias") return false;
    if (pool === null) return needsNoKey(provider);
    return (
      mayUseStoredKeys(this.#gateway, this.#caller.isAuthenticated) && pool.hasKey(model, undefined, null)
    );
  }

  #isOwnKeyFor({ slug }: Provider): boolean {
    const { hasOwnKey, endpoint } = this.#caller;
    return hasOwnKey && slug === homeOf(endpoint);
  }

  #poolOf(provider: Provider): ProviderKeyPool | null | "unknown alias" {
    let pool = this.#pools.get(provider.slug);
    if (pool === undefined) {
      pool = findPool(this.#keys, this.#gateway, provider, this.#caller.keyAlias);
      this.#pools.set(provider.slug, pool);
    }
    return pool;
  }
}

/** A provider whose configuration is incomplete, such as Bedrock without a region, refuses to say where its models are. */
function apisOf(provider: Provider, model: string): ProviderApis {
  try {
    return provider.apisFor(model);
  } catch (error) {
    if (error instanceof SignalboxError) return NO_APIS;
    throw error;
  }
}

function findPool(
  keys: ProviderKeys,
  gateway: Gateway,
  provider: Provider,
  alias: string | undefined,
): ProviderKeyPool | null | "unknown alias" {
  try {
    return keys.poolFor(gateway, provider, alias);
  } catch (error) {
    if (error instanceof SignalboxError) return "unknown alias";
    throw error;
  }
}

function needsNoKey({ slug }: Provider): boolean {
  return KEYLESS.has(slug) || slug.startsWith(CUSTOM_PREFIX);
}
