/**
 * One limit as calls meet it: what it counts, how much it allows in which window, and to which calls it applies. Rules of an account, of a
 * gateway and of a token have the same form, so that one check covers all of them (limits.ts).
 */
import { type TokenBudget, type TokenPolicy, type TokenRateLimit, budgetId } from "../../accounts/index.ts";
import { type Glob, matchesGlob, parseGlob } from "../../core/glob.ts";
import type { GatewaySettings, SpendRule } from "../settings/gateway-settings.ts";
import { createRateWindow, createWindow, type Window } from "./window.ts";

/** Who the amounts of a rule belong to. A new gateway of an old name is another owner. */
export interface LimitOwner {
  /** Names the owner in the database. */
  readonly key: string;
  readonly accountId: string;
}

/** `cost` in millionths of a dollar; `parallel` counts running calls and has no window. */
export type LimitKind = "cost" | "requests" | "tokens" | "parallel";

export type Metadata = Readonly<Record<string, string | number | boolean | null>>;

export interface LimitRule {
  readonly owner: LimitOwner;
  /** Unique among the rules of the owner; amounts are stored by it. */
  readonly id: string;
  /** For people and programs: the id, with the owner where it is not the gateway. */
  readonly name: string;
  readonly kind: LimitKind;
  /** In the unit of the kind. */
  readonly limit: number;
  readonly window: Window;
  /** A soft rule reports that the amount is exceeded, and refuses nothing. */
  readonly isSoft: boolean;
  /** Null when the rule applies to every call; all calls then share one bucket. */
  readonly conditions: RuleConditions | null;
}

export const MICRO = 1_000_000;

export interface RuleConditions {
  readonly providers: readonly Glob[] | null;
  readonly models: readonly Glob[] | null;
  readonly metadata: readonly MetadataCondition[];
}

interface MetadataCondition {
  readonly name: string;
  /** Null: each value has a bucket of its own. */
  readonly values: ReadonlySet<string> | null;
}

/** What one step of a call may use. */
export interface StepDemand {
  readonly provider: string;
  readonly model: string;
  /** Dollars that it is expected to cost. */
  readonly cost: number;
  /** Dollars that it may cost; as `cost` for a call that limits its output. */
  readonly most: number;
  readonly tokens: number;
  /** Whether cost and tokens are upper bounds. */
  readonly isBounded: boolean;
  /** The step may cost more than `most`, because its request names more than was read. Default false. */
  readonly isPartial?: boolean;
}

/** What is left of the tightest budget of a call. */
export interface Remaining {
  /** Dollars. */
  readonly amount: number;
  /** Milliseconds since the epoch; null for prepaid credit. */
  readonly resetAt: number | null;
}

/** The rules of an account or of a gateway. */
export function toLimitRules(owner: LimitOwner, label: string, rules: readonly SpendRule[]): LimitRule[] {
  return rules
    .filter(({ enabled }) => enabled)
    .map((rule) => ({
      owner,
      id: rule.id,
      name: `${label}${rule.id}`,
      kind: rule.limitType,
      limit: rule.limitType === "cost" ? rule.limit * MICRO : rule.limit,
      window: createWindow(rule.limitType === "parallel" ? null : rule.window, rule.technique, rule.timezone),
      isSoft: false,
      conditions: toConditions(rule),
    }));
}

/** No id of a spend rule contains a slash. */
export const RATE_RULE = "/rate_limiting";

/** The limit of requests that the settings of a gateway have; null when they have none. */
export function toRateRule(owner: LimitOwner, settings: GatewaySettings): LimitRule | null {
  const { rate_limiting_limit: limit, rate_limiting_interval: interval } = settings;
  if (limit === null || limit === 0 || interval === null || interval === 0) return null;
  const window = createRateWindow(limit, interval, settings.rate_limiting_technique ?? "fixed");
  return {
    owner,
    id: RATE_RULE,
    name: "rate_limiting",
    kind: "requests",
    limit,
    window: { ...window, key: `${window.key} ${limit}` },
    isSoft: false,
    conditions: null,
  };
}

/** The rules of a token's policy. */
export function toTokenRules(owner: LimitOwner, policy: TokenPolicy): LimitRule[] {
  const rule = (
    id: string,
    fields: Pick<LimitRule, "kind" | "limit" | "window">,
    isSoft = false,
  ): LimitRule => ({
    owner,
    id,
    name: `token ${id}`,
    isSoft,
    conditions: null,
    ...fields,
  });
  const budget = ({ limit, window, reset, timezone }: TokenBudget) => ({
    kind: "cost" as const,
    limit: limit * MICRO,
    window: createWindow(window, reset, timezone),
  });
  const rate = (limited: TokenRateLimit) => ({
    kind: limited.type,
    limit: limited.limit,
    window: rateWindow(limited),
  });
  return [
    ...policy.budgets.map((one) => rule(`budget-${budgetId(one)}`, budget(one))),
    ...policy.rateLimits.map((one) =>
      rule(one.type === "parallel" ? one.type : `${one.type}-${one.interval}`, rate(one)),
    ),
    ...(policy.softBudget === null
      ? []
      : [rule(`soft-budget-${budgetId(policy.softBudget)}`, budget(policy.softBudget), true)]),
  ];
}

function rateWindow(rate: TokenRateLimit): Window {
  if (rate.type === "parallel") return createWindow(null);
  return rate.type === "requests"
    ? createRateWindow(rate.limit, rate.interval, "sliding")
    : createWindow(rate.interval, "sliding");
}

function toConditions({ provider, model, metadata }: SpendRule): RuleConditions | null {
  const entries = Object.entries(metadata ?? {});
  if (provider === undefined && model === undefined && entries.length === 0) return null;
  return {
    providers: provider?.values.map(parseGlob) ?? null,
    models: model?.values.map(parseGlob) ?? null,
    metadata: entries.map(([name, condition]) => ({
      name,
      values: condition.mode === "partition" ? null : new Set(condition.values),
    })),
  };
}

/**
 * The partition of the rule that a call belongs to, null for a rule without partitions; undefined when the rule does not apply. Names are
 * compared in lower case: a provider may accept `GPT-5` for `gpt-5`.
 */
export function partitionOf(
  rule: LimitRule,
  provider: string,
  model: string,
  metadata: () => Metadata,
): string | null | undefined {
  const { conditions } = rule;
  if (conditions === null) return null;
  if (!matchesAny(conditions.providers, provider) || !matchesAny(conditions.models, model)) return undefined;
  if (conditions.metadata.length === 0) return null;
  const given = metadata();
  const parts: unknown[] = [];
  for (const { name, values } of conditions.metadata) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (values === null) parts.push([name, value ?? null]);
    else if (value === undefined || !values.has(String(value))) return undefined;
  }
  return parts.length === 0 ? null : JSON.stringify(parts);
}

function matchesAny(globs: readonly Glob[] | null, text: string): boolean {
  if (globs === null) return true;
  const lower = text.toLowerCase();
  return globs.some((glob) => matchesGlob(glob, lower));
}
