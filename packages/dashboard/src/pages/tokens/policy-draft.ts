/** The limits of a token, as a form edits them. */
import type { NewTokenPolicy, TokenBudget, TokenPolicy, TokenRateLimit } from "@signalbox/client";
import { formatPairs, parseLines, parsePairs } from "../../format/loose-value.ts";
import { isSame, mergeEdit } from "../../format/merge-edit.ts";
import { fromPeriod, MONTHLY, type Period, toPeriod } from "../limits/period.ts";

export interface BudgetDraft {
  readonly limit: string;
  readonly period: Period;
}

export interface RateDraft {
  readonly type: TokenRateLimit["type"];
  readonly limit: string;
  readonly interval: string;
}

/** Lists have one item in each line; metadata and tags have `name=value` in each line. */
export interface PolicyDraft {
  readonly owner: string;
  readonly budgets: readonly BudgetDraft[];
  /** At most one. */
  readonly softBudget: readonly BudgetDraft[];
  readonly rates: readonly RateDraft[];
  readonly models: string;
  readonly providers: string;
  readonly routes: string;
  readonly metadata: string;
  readonly tags: string;
}

export const BLANK_BUDGET: BudgetDraft = { limit: "", period: MONTHLY };
export const BLANK_RATE: RateDraft = { type: "requests", limit: "", interval: "60" };

export const NO_POLICY: PolicyDraft = {
  owner: "",
  budgets: [],
  softBudget: [],
  rates: [],
  models: "",
  providers: "",
  routes: "",
  metadata: "",
  tags: "",
};

export function toPolicyDraft(policy: TokenPolicy): PolicyDraft {
  return {
    owner: policy.owner ?? "",
    budgets: policy.budgets.map(toBudgetDraft),
    softBudget: policy.soft_budget === null ? [] : [toBudgetDraft(policy.soft_budget)],
    rates: policy.rate_limits.map(({ type, limit, interval }) => ({
      type,
      limit: String(limit),
      interval: String(interval ?? BLANK_RATE.interval),
    })),
    models: policy.models.join("\n"),
    providers: policy.providers.join("\n"),
    routes: policy.routes.join("\n"),
    metadata: formatPairs(policy.metadata),
    tags: Object.entries(policy.tags)
      .map(([name, value]) => `${name}=${value}`)
      .join("\n"),
  };
}

/**
 * Only members that differ from `before` are in the result, so that a save changes nothing else. `now` is what the token has when it is
 * saved: of the budgets those that were not edited keep their present limits, such as credit that was added meanwhile. Throws if an edited
 * member was changed by somebody else.
 */
export function changedPolicy(
  before: PolicyDraft,
  draft: PolicyDraft,
  now: PolicyDraft = before,
): NewTokenPolicy {
  const is = (name: keyof PolicyDraft) => !isSame(before[name], draft[name]);
  const rest = (policy: PolicyDraft): PolicyDraft => ({ ...policy, budgets: [] });
  mergeEdit(rest(before), rest(draft), rest(now), "token");
  const [soft] = draft.softBudget;
  return {
    ...(is("owner") ? { owner: draft.owner.trim() === "" ? null : draft.owner.trim() } : {}),
    ...(is("budgets")
      ? { budgets: mergeBudgets(before.budgets, draft.budgets, now.budgets).map(fromBudgetDraft) }
      : {}),
    ...(is("softBudget") ? { soft_budget: soft === undefined ? null : fromBudgetDraft(soft) } : {}),
    ...(is("rates") ? { rate_limits: draft.rates.map(fromRateDraft) } : {}),
    ...(is("models") ? { models: parseLines(draft.models) } : {}),
    ...(is("providers") ? { providers: parseLines(draft.providers) } : {}),
    ...(is("routes") ? { routes: parseLines(draft.routes) } : {}),
    ...(is("metadata") ? { metadata: parsePairs(draft.metadata) } : {}),
    ...(is("tags") ? { tags: parseTags(draft.tags) } : {}),
  };
}

/** A token has one budget for each window. */
function mergeBudgets(
  before: readonly BudgetDraft[],
  draft: readonly BudgetDraft[],
  now: readonly BudgetDraft[],
): BudgetDraft[] {
  const windowOf = ({ period }: BudgetDraft) => String(fromPeriod(period).window);
  const find = (budgets: readonly BudgetDraft[], window: string) =>
    budgets.find((budget) => windowOf(budget) === window);
  const edited = draft.map((budget) => {
    const window = windowOf(budget);
    const was = find(before, window);
    return was === undefined ? budget : mergeEdit(was, budget, find(now, window), "budget");
  });
  const added = now.filter(
    (budget) => ![...before, ...draft].some((one) => windowOf(one) === windowOf(budget)),
  );
  return [...edited, ...added];
}

function toBudgetDraft({ limit, window, reset, timezone }: TokenBudget): BudgetDraft {
  return { limit: String(limit), period: toPeriod({ window, isSliding: reset === "sliding", timezone }) };
}

function fromBudgetDraft({ limit, period }: BudgetDraft): TokenBudget {
  const { window, isSliding, timezone } = fromPeriod(period);
  return {
    limit: Number(limit),
    window,
    ...(isSliding ? { reset: "sliding" } : {}),
    ...(timezone === undefined ? {} : { timezone }),
  };
}

function fromRateDraft({ type, limit, interval }: RateDraft): TokenRateLimit {
  return { type, limit: Number(limit), ...(type === "parallel" ? {} : { interval: Number(interval) }) };
}

/** Values of tags are always text. */
function parseTags(text: string): Record<string, string> {
  return Object.fromEntries(
    parseLines(text).map((line) => {
      const [name = "", ...rest] = line.split("=");
      return [name.trim(), rest.join("=").trim()];
    }),
  );
}
