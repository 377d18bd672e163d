/**
 * Counts calls and money for the rate elements of routes, in the buckets of the gateway's other limits: money is durable, counts of calls live
 * as long as the process.
 *
 * Invariants:
 * 1. A count belongs to an element of a route: a new version of the route with an element of that id goes on counting.
 * 2. `take` is synchronous, so simultaneous calls cannot exceed a limit of calls. A call reserves its money before it is sent, and the last
 *    call that finds money left may exceed a budget.
 */
import type { RouteBudget } from "../limits/call-rules.ts";
import { refuse } from "../limits/limit-refusal.ts";
import { type LimitRule, MICRO } from "../limits/limit-rule.ts";
import { gatewayOwner, type Limits } from "../limits/limits.ts";
import { createRateWindow, createWindow } from "../limits/window.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { RateElement } from "./route-graph.ts";

/** The milliseconds until a call may pass, or that it may; then the budget to charge, null for a count. */
export type Taken = { readonly waitMs: number } | { readonly budget: RouteBudget | null };

const ANY_STEP = { provider: "", model: "" };

export class RouteCounters {
  readonly #limits: Pick<Limits, "bucketsOf" | "nowOf">;
  /** A graph is parsed once, so its elements can be keys. */
  readonly #rules = new WeakMap<RateElement, LimitRule>();

  constructor(limits: Pick<Limits, "bucketsOf" | "nowOf">) {
    this.#limits = limits;
  }

  /** Counts a call. `value` separates the counts of one element. */
  take(gateway: Gateway, routeId: string, element: RateElement, value: string | null): Taken {
    let rule = this.#rules.get(element);
    if (rule === undefined) this.#rules.set(element, (rule = toRule(gateway, routeId, element)));
    const now = this.#limits.nowOf(rule);
    const bucket = this.#limits.bucketsOf(rule).find(value, now);
    // One call, or the smallest amount of money.
    const need = { partition: value, amount: 1, expected: 1, isBounded: true, step: ANY_STEP };
    const refusal = refuse(rule, bucket, need, now);
    if (refusal !== null) return refusal;
    if (rule.kind === "cost") return { budget: { rule, bucket } };
    bucket.add(bucket.window.slotOf(now), 1);
    return { budget: null };
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
