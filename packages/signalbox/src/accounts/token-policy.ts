/**
 * The policy of a token: what makes it a virtual key. A token without a policy has `policy: null`, so that a call with a plain token pays one
 * comparison.
 *
 * Who enforces what:
 * - `models`, `providers`, `routes`: `gateway/keys/`, before anything leaves the process.
 * - `budgets`, `softBudget`, `rateLimits`: the gateway's limits. Spent amounts are stored by token id and `budgetId`, so a raised limit keeps
 *   what was spent in the current window.
 * - `guardrails`: `gateway/guardrails/`, on everything that is sent and received.
 * - `stamp`: the gateway puts it into the metadata of every call of the token; its keys win over the caller's.
 * See docs/decisions/0116.
 */
import type { GuardrailRule } from "./guardrail-rule.ts";

/** The kinds of calls that `routes` can name; `other` is a path of a provider that the gateway does not know. */
export const ROUTE_KINDS = [
  "chat",
  "completions",
  "responses",
  "messages",
  "embeddings",
  "generate_content",
  "images",
  "audio",
  "moderations",
  "models",
  "rerank",
  "realtime",
  "other",
] as const;

export type RouteKind = (typeof ROUTE_KINDS)[number];

/** Seconds; a calendar period in `timezone`; null for an amount that never comes back (prepaid). */
export type BudgetWindow = number | "day" | "week" | "month" | null;

export interface TokenBudget {
  /** US dollars. */
  readonly limit: number;
  readonly window: BudgetWindow;
  /** `fixed`: the whole amount is available again when a window begins. `sliding`: amounts return as they become older than the window. */
  readonly reset: "fixed" | "sliding";
  /** IANA name; calendar periods begin at midnight there. */
  readonly timezone: string;
}

export type TokenRateLimit =
  | {
      readonly type: "requests" | "tokens";
      readonly limit: number;
      /** Seconds. */
      readonly interval: number;
    }
  /** Calls that run at the same time. */
  | { readonly type: "parallel"; readonly limit: number };

export type MetadataValue = string | number | boolean | null;

export interface TokenPolicy {
  /** All of them apply. At most one for each window. */
  readonly budgets: readonly TokenBudget[];
  /** Like a budget, but a call beyond it is served and reported, not refused. */
  readonly softBudget: TokenBudget | null;
  readonly rateLimits: readonly TokenRateLimit[];
  /** Globs of `provider/model`; `!` excludes. Empty: all models. */
  readonly models: readonly string[];
  /** Globs of provider slugs; `!` excludes. Empty: all providers. */
  readonly providers: readonly string[];
  /** Empty: all kinds of calls. */
  readonly routes: readonly RouteKind[];
  /** What the texts of its calls may contain, beside the rules of the gateway and of the account. */
  readonly guardrails: readonly GuardrailRule[];
  readonly metadata: Readonly<Record<string, MetadataValue>>;
  readonly owner: string | null;
  /** Groups of tokens: a team, a cost centre. */
  readonly tags: Readonly<Record<string, string>>;
}

/** US dollars. 10 million dollars in millionths are far below 2^53, so sums stay exact. */
export const MAX_BUDGET = 10_000_000;

/** Metadata keys that only the service sets. */
export const RESERVED_METADATA_PREFIX = "token.";

/**
 * The metadata of every call of the token: its own, `token.owner` and `token.tags.<key>`. Rules of a gateway can use these keys, for example
 * to give every team one budget.
 */
export function stampOf(policy: TokenPolicy): Readonly<Record<string, MetadataValue>> {
  const stamp: Record<string, MetadataValue> = { ...policy.metadata };
  if (policy.owner !== null) stamp[`${RESERVED_METADATA_PREFIX}owner`] = policy.owner;
  for (const [key, value] of Object.entries(policy.tags)) {
    stamp[`${RESERVED_METADATA_PREFIX}tags.${key}`] = value;
  }
  return stamp;
}

/** True for a policy that can refuse a call. */
export function isLimiting(policy: TokenPolicy | null): boolean {
  if (policy === null) return false;
  const { budgets, rateLimits, models, providers, routes, guardrails } = policy;
  return [budgets, rateLimits, models, providers, routes, guardrails].some((rules) => rules.length > 0);
}

/** Identifies a budget among those of its token; it does not change when the limit changes. */
export function budgetId({ window }: Pick<TokenBudget, "window">): string {
  return window === null ? "total" : String(window);
}

export const NO_POLICY: TokenPolicy = {
  budgets: [],
  softBudget: null,
  rateLimits: [],
  models: [],
  providers: [],
  routes: [],
  guardrails: [],
  metadata: {},
  owner: null,
  tags: {},
};

/** The stored form: members that say nothing are left out. Null for a policy that says nothing. */
export function policyToText(policy: TokenPolicy): string | null {
  const entries = Object.entries(policy).filter(([, value]) => !isNothing(value));
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries));
}

export function policyFromText(text: string): TokenPolicy {
  return { ...NO_POLICY, ...(JSON.parse(text) as Partial<TokenPolicy>) };
}

function isNothing(value: unknown): boolean {
  return value === null || (typeof value === "object" && Object.keys(value).length === 0);
}
