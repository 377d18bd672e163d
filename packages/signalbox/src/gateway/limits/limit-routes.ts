/** Management of prices, of an account's limits, of prepaid credit, and of what is left of budgets. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { invalidRequest } from "../../core/invalid-request.ts";
import {
  boundGateway,
  budgetId,
  isAllowed,
  MAX_BUDGET,
  type Principal,
  type Tokens,
  type TokenBudget,
} from "../../accounts/index.ts";
import { priceTable } from "../../config/index.ts";
import { entityTag, requireMatch } from "../../core/entity-tag.ts";
import { defineRoute, type Reply, type Route } from "../../http/route.ts";
import type { Gateway } from "../settings/gateway.ts";
import { gatewayMissing, type Gateways } from "../settings/gateways.ts";
import { type SpendRule, spendRules } from "../settings/gateway-settings.ts";
import { budgetState } from "./budget-state.ts";
import { creditBody, type GatewayLimits } from "./create-limits.ts";
import { MICRO, toLimitRules, toTokenRules } from "./limit-rule.ts";
import { accountOwner, gatewayOwner, type OwnedRules, tokenOwner } from "./limits.ts";

export interface LimitRoutesParts {
  readonly gatewayLimits: GatewayLimits;
  readonly gateways: Gateways;
  readonly tokens: Tokens;
}

const PRICES = "/accounts/{account_id}/ai-gateway/prices";
const LIMITS = "/accounts/{account_id}/ai-gateway/limits";
const GATEWAY = "/accounts/{account_id}/ai-gateway/gateways/{gateway_id}";
/** Limits in one listing of the most used. */
const MAX_MOST_USED = 100;
const TOKEN = "/accounts/{account_id}/tokens/{token_id}";

export function limitRoutes(parts: LimitRoutesParts): Route[] {
  return [
    ...priceRoutes(parts),
    ...accountLimitRoutes(parts),
    ...budgetRoutes(parts),
    ...creditRoutes(parts),
  ];
}

const pricesBody = z.strictObject({ prices: priceTable });
const priceQuery = z.strictObject({
  /** With `model`: also the price that a call of this model has. */
  provider: z.string().optional(),
  model: z.string().optional(),
});
const pricesResult = z.object({
  prices: priceTable,
  found: z
    .object({
      provider: z.string(),
      model: z.string(),
      source: z.enum(["account", "configuration", "list", "unknown"]),
      price: z.record(z.string(), z.unknown()).nullable(),
    })
    .optional(),
});

function priceRoutes({ gatewayLimits }: LimitRoutesParts): Route[] {
  const { accountPrices, prices } = gatewayLimits;
  const find = (accountId: string, provider: string, model: string) => {
    const own = accountPrices.of(accountId);
    const override = prices.overrideOf(provider, model, own);
    if (override !== undefined) {
      const source = prices.overrideOf(provider, model) === override ? "configuration" : "account";
      return { provider, model, source, price: override };
    }
    const isKnown = prices.isKnown(provider, model);
    const price = isKnown ? prices.listPricesOf(provider, model) : null;
    return { provider, model, source: isKnown ? "list" : "unknown", price };
  };
  return [
    defineRoute({
      method: "GET",
      path: PRICES,
      access: "gateway.read",
      summary: "The account's own prices, and the price of one model.",
      query: priceQuery,
      result: pricesResult,
      handler: ({ params, query: { provider, model } }) => {
        const accountId = params.account_id;
        const own = { prices: accountPrices.of(accountId) ?? {} };
        if (provider === undefined && model === undefined) return tagged(own);
        if (provider === undefined || model === undefined)
          throw invalidRequest("provider and model belong together");
        return { result: { ...own, found: find(accountId, provider, model) } };
      },
    }),
    defineRoute({
      method: "PUT",
      path: PRICES,
      access: "gateway.edit",
      summary:
        "Replaces the account's own prices, in US dollars per million tokens, by provider and model (`*`: all other models). `If-Match` takes the `etag` of a read.",
      body: pricesBody,
      // A public list has thousands of models.
      maxBodyBytes: 4 * 1024 * 1024,
      result: pricesResult,
      handler: async ({ params, body, headers }) => {
        await accountPrices.change(params.account_id, (present) => {
          requireMatch(headers, { prices: present ?? {} });
          return body.prices;
        });
        return tagged({ prices: body.prices });
      },
    }),
    defineRoute({
      method: "DELETE",
      path: PRICES,
      access: "gateway.edit",
      summary: "Removes the account's own prices.",
      result: pricesResult,
      handler: async ({ params, headers }) => {
        await accountPrices.change(params.account_id, (present) => {
          requireMatch(headers, { prices: present ?? {} });
          return undefined;
        });
        return tagged({ prices: {} });
      },
    }),
  ];
}

const limitsBody = z.strictObject({ rules: spendRules });

function accountLimitRoutes({ gatewayLimits: { accountRules } }: LimitRoutesParts): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: LIMITS,
      access: "gateway.read",
      summary: "The limits of the account, over all of its gateways.",
      result: limitsBody,
      handler: ({ params }) => tagged({ rules: accountRules.of(params.account_id) ?? [] }),
    }),
    defineRoute({
      method: "PUT",
      path: LIMITS,
      access: "gateway.edit",
      summary:
        "Replaces the limits of the account; rules have the form of a gateway's `spend_limits.rules`. `If-Match` takes the `etag` of a read.",
      body: limitsBody,
      result: limitsBody,
      handler: async ({ params, body, headers }) => {
        await accountRules.change(params.account_id, (present) => {
          requireMatch(headers, { rules: present ?? [] });
          return body.rules;
        });
        return tagged(body);
      },
    }),
    defineRoute({
      method: "DELETE",
      path: LIMITS,
      access: "gateway.edit",
      summary: "Removes the limits of the account.",
      result: limitsBody,
      handler: async ({ params, headers }) => {
        await accountRules.change(params.account_id, (present) => {
          requireMatch(headers, { rules: present ?? [] });
          return undefined;
        });
        return tagged({ rules: [] });
      },
    }),
  ];
}

const budgets = z.object({ budgets: z.array(budgetState) });

function budgetRoutes(parts: LimitRoutesParts): Route[] {
  const { gateways, tokens } = parts;
  const { limits, accountRules } = parts.gatewayLimits;
  return [
    defineRoute({
      method: "GET",
      path: "/accounts/{account_id}/ai-gateway/budgets",
      access: "gateway.read",
      summary: "What of each limit of the account is used.",
      result: budgets,
      handler: async ({ params: { account_id: accountId } }) => ({
        result: {
          budgets: await limits.stateOfRules(accountOwner(accountId), accountRules.of(accountId) ?? []),
        },
      }),
    }),
    mostUsedRoute(parts),
    defineRoute({
      method: "GET",
      path: `${GATEWAY}/budgets`,
      access: "gateway.read",
      summary: "What of each limit of the gateway is used.",
      result: budgets,
      handler: async ({ params }) => {
        const gateway = gateways.find(params.account_id, params.gateway_id);
        if (gateway === undefined) throw gatewayMissing();
        return {
          result: { budgets: await limits.stateOfRules(gatewayOwner(gateway), rulesOf(gateway)) },
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${TOKEN}/budgets`,
      access: "tokens.edit",
      summary: "What of each limit of the token is used.",
      result: budgets,
      handler: async ({ params }) => {
        const token = tokens.find(params.account_id, params.token_id);
        if (token === undefined) throw tokenMissing();
        return {
          result: {
            budgets: token.policy === null ? [] : await limits.stateOfToken(tokenOwner(token), token.policy),
          },
        };
      },
    }),
  ];
}

const mostUsedQuery = z.strictObject({
  /** Default: the limits of all three. */
  of: z.enum(["account", "gateway", "token"]).optional(),
  limit: z.coerce.number().int().min(1).max(MAX_MOST_USED).default(20),
});
const mostUsedResult = z.object({
  budgets: z.array(
    budgetState.extend({
      /** Null for a limit of the account or of a token. */
      gateway_id: z.string().nullable(),
      /** Null for a limit of the account or of a gateway. */
      token_id: z.string().nullable(),
      token_name: z.string().nullable(),
    }),
  ),
});

interface NamedRules extends OwnedRules {
  readonly names: {
    readonly gateway_id: string | null;
    readonly token_id: string | null;
    readonly token_name: string | null;
  };
}

const NO_NAMES = { gateway_id: null, token_id: null, token_name: null };

function mostUsedRoute({ gatewayLimits, gateways, tokens }: LimitRoutesParts): Route {
  const { limits, accountRules } = gatewayLimits;
  const ofAccount = (accountId: string): NamedRules => {
    const owner = accountOwner(accountId);
    return { owner, rules: toLimitRules(owner, "", accountRules.of(accountId) ?? []), names: NO_NAMES };
  };
  const ofGateway = (gateway: Gateway): NamedRules => {
    const owner = gatewayOwner(gateway);
    return {
      owner,
      rules: toLimitRules(owner, "", rulesOf(gateway)),
      names: { ...NO_NAMES, gateway_id: gateway.id },
    };
  };
  function* owned(principal: Principal, accountId: string, of: string | undefined): Generator<NamedRules> {
    const bound = boundGateway(principal);
    if (of !== "token" && of !== "gateway" && bound === null) yield ofAccount(accountId);
    if (of !== "token" && of !== "account")
      for (const gateway of gateways.list(accountId))
        if (bound === null || gateway.id === bound) yield ofGateway(gateway);
    if (
      of === "account" ||
      of === "gateway" ||
      bound !== null ||
      !isAllowed(principal, accountId, "tokens.edit")
    )
      return;
    for (const token of tokens.withPolicy(accountId)) {
      const owner = tokenOwner(token);
      yield {
        owner,
        rules: toTokenRules(owner, token.policy),
        names: { ...NO_NAMES, token_id: token.id, token_name: token.name },
      };
    }
  }
  return defineRoute({
    method: "GET",
    path: "/accounts/{account_id}/ai-gateway/budgets/most-used",
    access: "gateway.read",
    summary:
      "The limits of the account, of its gateways and of its tokens of which the largest share is used; of tokens only for callers with `tokens.edit`, and without limits on parallel calls.",
    query: mostUsedQuery,
    narrowsToGateway: true,
    result: mostUsedResult,
    handler: async ({ params, query, principal }) => {
      const found = await limits.mostUsed(owned(principal, params.account_id, query.of), query.limit);
      return { result: { budgets: found.map(({ owned: { names }, state }) => ({ ...state, ...names })) } };
    },
  });
}

function rulesOf({ settings: { spend_limits: own } }: Gateway): readonly SpendRule[] {
  return own?.enabled === true ? own.rules : [];
}

function creditRoutes({ gatewayLimits: { accountRules }, gateways, tokens }: LimitRoutesParts): Route[] {
  const result = z.object({ rule: z.string(), limit: z.number() });
  return [
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${LIMITS}/credit`,
      access: "gateway.edit",
      summary: "Adds prepaid credit to a limit of the account that has no window.",
      body: creditBody,
      result,
      handler: async ({ params: { account_id: accountId }, body }) => {
        const rules = await accountRules.change(accountId, (present) =>
          withCredit(present ?? [], body.rule, body.amount),
        );
        const rule = findCredit(rules, body.rule);
        return { result: { rule: rule.id, limit: rule.limit } };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${GATEWAY}/credit`,
      access: "gateway.edit",
      summary: "Adds prepaid credit to a limit of the gateway that has no window.",
      body: creditBody,
      result,
      handler: async ({ params, body }) => {
        const changed = await gateways.change(
          params.account_id,
          params.gateway_id,
          ({ spend_limits: limits }) => {
            if (limits === null) throw noCredit();
            return { spend_limits: { ...limits, rules: withCredit(limits.rules, body.rule, body.amount) } };
          },
        );
        const rule = findCredit(changed.settings.spend_limits?.rules ?? [], body.rule);
        return { result: { rule: rule.id, limit: rule.limit } };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${TOKEN}/credit`,
      access: "tokens.edit",
      summary: "Adds prepaid credit to the budget of the token that has no window.",
      body: z.strictObject({ amount: creditBody.shape.amount }),
      result,
      handler: async ({ params: { account_id: accountId, token_id: id }, body, principal }) => {
        const changed = await tokens.update(principal, accountId, id, ({ policy }) => {
          if (policy === null || !policy.budgets.some(isPrepaid)) throw noCredit();
          const budgets = policy.budgets.map((budget) =>
            isPrepaid(budget) ? { ...budget, limit: raised(budget.limit, body.amount, MAX_BUDGET) } : budget,
          );
          return { policy: { ...policy, budgets } };
        });
        const budget = changed.policy?.budgets.find(isPrepaid);
        if (budget === undefined) throw noCredit();
        return { result: { rule: `budget-${budgetId(budget)}`, limit: budget.limit } };
      },
    }),
  ];
}

function tagged(result: object): Reply {
  return { result, headers: { etag: entityTag(result) } };
}

function isPrepaid({ window }: TokenBudget): boolean {
  return window === null;
}

function findCredit(rules: readonly SpendRule[], id: string | undefined): SpendRule {
  const prepaid = rules.filter(({ limitType, window }) => limitType === "cost" && window === null);
  const rule = id === undefined && prepaid.length === 1 ? prepaid[0] : prepaid.find((one) => one.id === id);
  if (rule === undefined) throw noCredit();
  return rule;
}

function withCredit(rules: readonly SpendRule[], id: string | undefined, amount: number): SpendRule[] {
  const before = findCredit(rules, id);
  const limit = raised(before.limit, amount, MAX_CREDIT);
  return rules.map((one) => (one === before ? { ...before, limit } : one));
}

/** Amounts are counted in millionths of a dollar; a sum that is not exact would not be what was paid. */
const MAX_CREDIT = Math.floor(Number.MAX_SAFE_INTEGER / MICRO);

function raised(limit: number, amount: number, max: number): number {
  const sum = Math.round((limit + amount) * MICRO) / MICRO;
  if (sum > max) throw invalidRequest(`amount: the limit would be more than ${max} US dollars`);
  return sum;
}

function noCredit(): SignalboxError {
  return invalidRequest(
    "there is no such limit on cost with window null; name it in rule if there are several",
  );
}

function tokenMissing(): SignalboxError {
  return new SignalboxError("not_found", { message: "Token not found" });
}
