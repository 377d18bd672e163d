/**
 * The JSON form of a token's policy in the management interface. What is read can be written back; a member that a change omits keeps its
 * value, and null or an empty list removes it.
 */
import { z } from "zod";
import { isTimeZone } from "../core/time-zone.ts";
import { guardrailRules } from "./guardrail-rule.ts";
import {
  budgetId,
  MAX_BUDGET,
  RESERVED_METADATA_PREFIX,
  ROUTE_KINDS,
  type TokenBudget,
  type TokenPolicy,
  type TokenRateLimit,
} from "./token-policy.ts";

const MAX_BUDGETS = 10;
const MAX_RATE_LIMITS = 10;
const MAX_RULES = 100;
const MAX_GLOB = 256;
const MAX_METADATA_KEYS = 16;
const MAX_TAGS = 16;
const MAX_WINDOW_S = 366 * 24 * 3600;

const budget = z
  .strictObject({
    limit: z.number().positive().max(MAX_BUDGET),
    window: z.union([z.int().min(1).max(MAX_WINDOW_S), z.enum(["day", "week", "month"])]).nullable(),
    reset: z.enum(["fixed", "sliding"]).default("fixed"),
    timezone: z
      .string()
      .max(64)
      .refine(isTimeZone, "must be an IANA time zone, e.g. Europe/Berlin")
      .default("UTC"),
  })
  .refine(
    ({ window, reset }) => reset === "fixed" || typeof window === "number",
    "reset: only a window in seconds can be sliding",
  );

const counted = z.strictObject({
  type: z.enum(["requests", "tokens"]),
  limit: z.int().min(1).max(1_000_000_000),
  /** Seconds. */
  interval: z.int().min(1).max(MAX_WINDOW_S),
});
const parallel = z.strictObject({
  type: z.literal("parallel"),
  limit: z.int().min(1).max(1_000_000),
  interval: z.null().optional(),
});

const glob = z
  .string()
  .min(1)
  .max(MAX_GLOB)
  .regex(/^!?[^!\s][^\s]*$/, 'must be a name with "*" for any text, after "!" to exclude it');

const text = (max: number) => z.string().min(1).max(max);

/** The members of a token's policy in a request body. */
export const policyFields = {
  budgets: z
    .array(budget)
    .max(MAX_BUDGETS)
    .refine((budgets) => areDistinct(budgets.map(budgetId)), "two budgets have the same window")
    .nullish(),
  soft_budget: budget.nullish(),
  rate_limits: z
    .array(z.discriminatedUnion("type", [counted, parallel]))
    .max(MAX_RATE_LIMITS)
    .refine((limits) => areDistinct(limits.map(({ type, interval }) => `${type} ${interval}`)), {
      message: "two limits have the same type and interval",
    })
    .nullish(),
  models: z.array(glob).max(MAX_RULES).nullish(),
  providers: z.array(glob).max(MAX_RULES).nullish(),
  routes: z.array(z.enum(ROUTE_KINDS)).max(ROUTE_KINDS.length).nullish(),
  guardrails: guardrailRules.nullish(),
  metadata: z
    .record(text(64), z.union([z.string().max(512), z.number(), z.boolean(), z.null()]))
    .refine((metadata) => Object.keys(metadata).length <= MAX_METADATA_KEYS, {
      message: `at most ${MAX_METADATA_KEYS} keys`,
    })
    .refine((metadata) => !Object.keys(metadata).some((key) => key.startsWith(RESERVED_METADATA_PREFIX)), {
      message: `keys that begin with ${RESERVED_METADATA_PREFIX} are reserved`,
    })
    .nullish(),
  owner: text(256).nullish(),
  tags: z
    .record(text(64), z.string().max(256))
    .refine((tags) => Object.keys(tags).length <= MAX_TAGS, { message: `at most ${MAX_TAGS} tags` })
    .nullish(),
};

const policyBody = z.object(policyFields);
export type PolicyBody = z.output<typeof policyBody>;

/** The policy after a change; omitted members keep the values of `before`. */
export function applyPolicyBody(before: TokenPolicy, body: PolicyBody): TokenPolicy {
  return {
    budgets: body.budgets === undefined ? before.budgets : (body.budgets ?? []),
    softBudget: body.soft_budget === undefined ? before.softBudget : body.soft_budget,
    rateLimits:
      body.rate_limits === undefined ? before.rateLimits : (body.rate_limits ?? []).map(toRateLimit),
    models: body.models === undefined ? before.models : (body.models ?? []),
    providers: body.providers === undefined ? before.providers : (body.providers ?? []),
    routes: body.routes === undefined ? before.routes : (body.routes ?? []),
    guardrails: body.guardrails === undefined ? before.guardrails : (body.guardrails ?? []),
    metadata: body.metadata === undefined ? before.metadata : (body.metadata ?? {}),
    owner: body.owner === undefined ? before.owner : body.owner,
    tags: body.tags === undefined ? before.tags : (body.tags ?? {}),
  };
}

const budgetResult = z.object({
  limit: z.number(),
  window: z.union([z.number(), z.string()]).nullable(),
  reset: z.string(),
  timezone: z.string(),
});

/** The members of a token's policy in a response. */
export const policyResult = {
  budgets: z.array(budgetResult),
  soft_budget: budgetResult.nullable(),
  rate_limits: z.array(z.object({ type: z.string(), limit: z.number(), interval: z.number().nullable() })),
  models: z.array(z.string()),
  providers: z.array(z.string()),
  routes: z.array(z.string()),
  guardrails: z.array(z.record(z.string(), z.unknown())),
  metadata: z.record(z.string(), z.unknown()),
  owner: z.string().nullable(),
  tags: z.record(z.string(), z.string()),
};

const policyShown = z.object(policyResult);

export function showPolicy(policy: TokenPolicy): z.input<typeof policyShown> {
  return {
    budgets: policy.budgets.map(showBudget),
    soft_budget: policy.softBudget === null ? null : showBudget(policy.softBudget),
    rate_limits: policy.rateLimits.map((limit) => ({
      type: limit.type,
      limit: limit.limit,
      interval: limit.type === "parallel" ? null : limit.interval,
    })),
    models: [...policy.models],
    providers: [...policy.providers],
    routes: [...policy.routes],
    guardrails: policy.guardrails.map((rule) => ({ ...rule })),
    metadata: { ...policy.metadata },
    owner: policy.owner,
    tags: { ...policy.tags },
  };
}

function showBudget({ limit, window, reset, timezone }: TokenBudget): z.input<typeof budgetResult> {
  return { limit, window, reset, timezone };
}

function toRateLimit(limit: NonNullable<PolicyBody["rate_limits"]>[number]): TokenRateLimit {
  return limit.type === "parallel" ? { type: limit.type, limit: limit.limit } : limit;
}

function areDistinct(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}
