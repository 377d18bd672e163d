/**
 * Applies the policy of a call's token: stamps the token's metadata, and refuses models, providers and kinds of calls that the token may not use.
 * The stamp comes before everything that reads metadata (routes, strategies, limits, the log). Steps are checked after planning and before anything
 * leaves the process, each of them: a fallback is no way around a rule. Budgets and rates are the limits' part.
 */
import { SignalboxError } from "@signalbox/protocol";
import {
  AllowRules,
  type MetadataValue,
  type RouteKind,
  stampOf,
  type TokenPolicy,
} from "../../accounts/index.ts";
import type { CallOptions } from "../step/call-options.ts";
import { MAX_MODEL_LENGTH } from "../step/model-name.ts";
import type { Step } from "../step/step.ts";
import { COUNTS_TOKENS, type NamedModels, READING, readNamedModels } from "../models/named-models.ts";

/** What is derived from a policy once: a policy is immutable, and a changed token has a new one. */
interface PolicyRules {
  readonly models: AllowRules | null;
  readonly providers: AllowRules | null;
  readonly stamp: Readonly<Record<string, MetadataValue>>;
  /** Null if nothing is stamped. */
  readonly stampText: string | null;
}

const derived = new WeakMap<TokenPolicy, PolicyRules>();

/** The options with the token's metadata, which takes precedence over the caller's. */
export function stampOptions(policy: TokenPolicy | null, options: CallOptions): CallOptions {
  if (policy === null) return options;
  const { stamp, stampText } = rulesOf(policy);
  if (stampText === null) return options;
  const { metadata } = options;
  const stamped =
    metadata === undefined
      ? stampText
      : JSON.stringify({ ...(JSON.parse(metadata) as Record<string, unknown>), ...stamp });
  return { ...options, metadata: stamped };
}

/** Throws `gateway_model_not_allowed`. */
export function requireAllowedSteps(policy: TokenPolicy, steps: readonly Step[]): void {
  steps.forEach((step, i) => requireAllowedStep(policy, step, steps.length > 1 ? `step ${i}: ` : ""));
}

/** Whether a token may use a model, as far as its name decides. */
export function allowsModel(policy: TokenPolicy, provider: string, model: string): boolean {
  const { models, providers } = rulesOf(policy);
  const slug = provider.toLowerCase();
  return providers?.allows(slug, "") !== false && models?.allows(slug, model.toLowerCase()) !== false;
}

export function requireAllowedStep(policy: TokenPolicy, step: Step, prefix = ""): void {
  const slug = step.provider.slug.toLowerCase();
  requireAllowedKind(policy, slug, kindOf(step), prefix);
  if (!limitsModels(policy, slug)) return;
  if (!mayRead(policy, step)) {
    throw refused(
      `${prefix}The token may call only some models, and use stored keys for nothing else; it may read the list of models, and more if its routes include other. Nothing can be deleted`,
    );
  }
  requireAllowedModels(policy, slug, readNamedModels(step), prefix);
}

/**
 * False for a request that starts no model and would show or delete what others keep at the provider: files, responses, keys of the organization. With a credential
 * of the operator, a token for some models is no token for these; a caller's own credential decides for itself.
 */
function mayRead({ routes }: TokenPolicy, { upstream, path, hasOwnKey }: Step): boolean {
  if (hasOwnKey || !READING.has(upstream.method)) return true;
  if (upstream.method !== "GET" && upstream.method !== "HEAD") return false;
  return routes.includes("other") || LISTS_MODELS.test(path);
}

/**
 * `models` and `models/{name}`, below any version. No escapes, and no characters that providers may read in another way; dot segments are refused
 * before.
 */
const LISTS_MODELS = /^\/?(?:[\w.-]+\/)*models(?:\/[\w.:@-]+)?$/i;

/** Throws if the token may not use the provider, or not for calls of this kind. `slug` in lower case. */
export function requireAllowedKind(policy: TokenPolicy, slug: string, kind: RouteKind, prefix = ""): void {
  const { providers } = rulesOf(policy);
  if (policy.routes.length > 0 && !policy.routes.includes(kind)) {
    throw refused(
      `${prefix}The token may not make calls of the kind ${kind}; allowed: ${policy.routes.join(", ")}`,
    );
  }
  if (providers?.allows(slug, "") === false) {
    throw refused(
      `${prefix}The token may not call the provider ${slug}; allowed: ${policy.providers.join(", ")}`,
    );
  }
}

/** Whether some models of the provider are forbidden. */
export function limitsModels(policy: TokenPolicy, slug: string): boolean {
  const { models } = rulesOf(policy);
  return models !== null && !models.allowsAll(slug);
}

export function requireAllowedModels(
  policy: TokenPolicy,
  slug: string,
  { names, isCertain }: NamedModels,
  prefix = "",
): void {
  const { models } = rulesOf(policy);
  if (models === null) return;
  const forbidden = names.find(
    (name) => name.length > MAX_MODEL_LENGTH || !models.allows(slug, name.toLowerCase()),
  );
  if (forbidden !== undefined) {
    throw refused(
      `${prefix}The token may not call ${slug}/${forbidden.slice(0, 100)}; allowed models: ${policy.models.join(", ")}`,
    );
  }
  if (!isCertain) {
    throw refused(
      `${prefix}The token may call only some models, and the model of this request cannot be determined; send one JSON object that names it, uncompressed. Allowed models: ${policy.models.join(", ")}`,
    );
  }
}

/** Who may send messages may count their tokens. */
function kindOf({ requestType, path }: Step): RouteKind {
  if (requestType !== "") return requestType;
  return COUNTS_TOKENS.test(path) ? "messages" : "other";
}

function rulesOf(policy: TokenPolicy): PolicyRules {
  let rules = derived.get(policy);
  if (rules === undefined) {
    const stamp = stampOf(policy);
    rules = {
      models: policy.models.length === 0 ? null : AllowRules.ofModels(policy.models),
      providers: policy.providers.length === 0 ? null : AllowRules.ofProviders(policy.providers),
      stamp,
      stampText: Object.keys(stamp).length === 0 ? null : JSON.stringify(stamp),
    };
    derived.set(policy, rules);
  }
  return rules;
}

function refused(message: string): SignalboxError {
  return new SignalboxError("gateway_model_not_allowed", { message });
}
