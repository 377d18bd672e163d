/**
 * Counts calls and money for the rate elements of routes, in the ledger of the gateway's other limits: money is durable, counts of calls live as long
 * as the process, unless nodes share them.
 *
 * Invariants:
 * 1. A count belongs to an element of a route: a new version of the route with an element of that id goes on counting.
 * 2. Simultaneous calls cannot exceed a limit of calls. A call reserves its money before it is sent, and the last call that finds money left may
 *    exceed a budget.
 */
import type { ActiveRule, RouteBudget } from "../limits/call-rules.ts";
import type { Ledger, Taken } from "../limits/ledger.ts";
import { Refusal } from "../limits/limit-refusal.ts";
import { type LimitRule, MICRO } from "../limits/limit-rule.ts";
import { gatewayOwner } from "../limits/limits.ts";
import { createRateWindow, createWindow } from "../limits/window.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { RateElement } from "./route-graph.ts";

/** Why the call may not pass; or that it may, with the budget to charge, null for a count. */
export type Counted = Refusal | { readonly budget: RouteBudget | null };

const ANY_STEP = { provider: "", model: "" };

export class RouteCounters {
  readonly #ledger: Pick<Ledger, "take" | "bucketsOf">;
  /** A graph is parsed once, so its elements can be keys. */
  readonly #rules = new WeakMap<RateElement, ActiveRule>();

  constructor(ledger: Pick<Ledger, "take" | "bucketsOf">) {
    this.#ledger = ledger;
  }

  /** Counts a call. `value` separates the counts of one element. A promise only if nodes share the count and PostgreSQL must be asked. */
  count(
    gateway: Gateway,
    routeId: string,
    element: RateElement,
    value: string | null,
  ): Counted | Promise<Counted> {
    const active = this.#activeOf(gateway, routeId, element);
    const { rule, buckets } = active;
    const need = {
      rule,
      bucket: buckets.find(value),
      // One call, or the smallest amount of money: the call reserves what it needs when it is sent.
      amount: 1,
      expected: rule.kind === "cost" ? 0 : 1,
      isBounded: true,
      runsAlone: false,
      isForced: false,
      step: ANY_STEP,
    };
    const conclude = (taken: Taken): Counted => {
      if (taken instanceof Refusal) return taken;
      taken.release();
      return { budget: rule.kind === "cost" ? { ...active, partition: value } : null };
    };
    const taken = this.#ledger.take([need]);
    return taken instanceof Promise ? taken.then(conclude) : conclude(taken);
  }

  #activeOf(gateway: Gateway, routeId: string, element: RateElement): ActiveRule {
    const known = this.#rules.get(element);
    if (known !== undefined) return known;
    const rule = toRule(gateway, routeId, element);
    const active = { rule, buckets: this.#ledger.bucketsOf(rule) };
    this.#rules.set(element, active);
    return active;
  }
}

function toRule(gateway: Gateway, routeId: string, element: RateElement): LimitRule {
  const { limitType, limit, windowS, technique, id } = element;
  const isCost = limitType === "cost";
  return {
    owner: gatewayOwner(gateway),
    // No id of a spend rule contains a slash, and the names of buckets have a space behind the id.
    id: `/routes/${routeId}/${encodeURIComponent(id)}`,
    name: id,
    kind: isCost ? "cost" : "requests",
    limit: isCost ? limit * MICRO : Math.floor(limit),
    window: isCost ? createWindow(windowS, technique) : createRateWindow(limit, windowS, technique),
    isSoft: false,
    conditions: null,
  };
}
