/** Management of prices, of an account's limits, of prepaid credit, and of what is left of budgets. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { invalidRequest } from "../../core/invalid-request.ts";
import { budgetId, MAX_BUDGET, type Tokens, type TokenBudget } from "../../accounts/index.ts";
import { priceTable } from "../../config/index.ts";
import { entityTag, requireMatch } from "../../core/entity-tag.ts";
import { defineRoute, type Reply, type Route } from "../../http/route.ts";
import { gatewayMissing, type Gateways } from "../settings/gateways.ts";
import { type SpendRule, spendRules } from "../settings/gateway-settings.ts";
import { budgetState } from "./budget-state.ts";
import { creditBody, type GatewayLimits } from "./create-limits.ts";
import { MICRO } from "./limit-rule.ts";
import { accountOwner, gatewayOwner, tokenOwner } from "./limits.ts";

export interface LimitRoutesParts {
  readonly gatewayLimits: GatewayLimits;
  readonly gateways: Gateways;
  readonly tokens: Tokens;
}

const PRICES = "/accounts/{account_id}/ai-gateway/prices";
const LIMITS = "/accounts/{account_id}/ai-gateway/limits";
const GATEWAY = "/accounts/{account_id}/ai-gateway/gateways/{gateway_id}";
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

function budgetRoutes({
  gatewayLimits: { limits, accountRules },
  gateways,
  tokens,
}: LimitRoutesParts): Route[] {
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
    defineRoute({
      method: "GET",
      path: `${GATEWAY}/budgets`,
      access: "gateway.read",
      summary: "What of each limit of the gateway is used.",
      result: budgets,
      handler: async ({ params }) => {
        const gateway = gateways.find(params.account_id, params.gateway_id);
        if (gateway === undefined) throw gatewayMissing();
        const { spend_limits: own } = gateway.settings;
        return {
          result: {
            budgets: await limits.stateOfRules(gatewayOwner(gateway), own?.enabled === true ? own.rules : []),
          },
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
