/**
 * Counts calls and money for the rate elements of routes, in the buckets of the gateway's other limits: money is durable, counts of calls live
 * as long as the process.
 *
 * Invariants:
 * 1. A count belongs to an element of a route: a new version of the route with an element of that id goes on counting.
 * 2. `take` is synchronous, so simultaneous calls cannot exceed a limit of calls. A call reserves its money before it is sent, and the last
 *    call that finds money left may exceed a budget. If nodes share the count, `take` may have to wait, and is then repeated.
 */
import type { SignalboxError } from "@signalbox/protocol";
import type { RouteBudget } from "../limits/call-rules.ts";
import type { Claim, ClaimPart } from "../limits/claim.ts";
import { Delay } from "../step/delay.ts";
import { refuse } from "../limits/limit-refusal.ts";
import { type LimitRule, MICRO } from "../limits/limit-rule.ts";
import { gatewayOwner, type Limits } from "../limits/limits.ts";
import type { ShareExchange } from "../limits/share-exchange.ts";
import type { SharedBucket } from "../limits/shared-bucket.ts";
import { createRateWindow, createWindow } from "../limits/window.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { RateElement } from "./route-graph.ts";

/**
 * The milliseconds until a call may pass, with the error if the count could not be read; or that it may, with the budget to charge, null for a
 * count.
 */
export type Taken =
  | { readonly waitMs: number; readonly error?: SignalboxError | null }
  | { readonly budget: RouteBudget | null };

/** What one walk waits for. */
export type PendingCounts = Map<RateElement, Claim>;

/** While counts cannot be read. */
const RETRY_MS = 1000;
const ANY_STEP = { provider: "", model: "" };

export class RouteCounters {
  readonly #limits: Pick<Limits, "bucketsOf" | "nowOf" | "shares">;
  /** A graph is parsed once, so its elements can be keys. */
  readonly #rules = new WeakMap<RateElement, LimitRule>();

  constructor(limits: Pick<Limits, "bucketsOf" | "nowOf" | "shares">) {
    this.#limits = limits;
  }

  /** Counts a call. `value` separates the counts of one element. */
  take(
    gateway: Gateway,
    routeId: string,
    element: RateElement,
    value: string | null,
    pending: PendingCounts,
  ): Taken | Delay {
    let rule = this.#rules.get(element);
    if (rule === undefined) this.#rules.set(element, (rule = toRule(gateway, routeId, element)));
    const now = this.#limits.nowOf(rule);
    const bucket = this.#limits.bucketsOf(rule).find(value, now);
    // One call, or the smallest amount of money.
    const need = { partition: value, amount: 1, expected: 1, isBounded: true, step: ANY_STEP };
    const { shares } = this.#limits;
    if (shares !== null) {
      const part = { rule, bucket: bucket as SharedBucket, need, isForced: false };
      return takeShared(shares, part, element, pending);
    }
    const refusal = refuse(rule, bucket, need, now);
    if (refusal !== null) return refusal;
    if (rule.kind === "cost") return { budget: { rule, bucket } };
    bucket.add(bucket.window.slotOf(now), 1);
    return { budget: null };
  }
}

function takeShared(
  shares: ShareExchange,
  part: ClaimPart,
  element: RateElement,
  pending: PendingCounts,
): Taken | Delay {
  const { rule, bucket, need } = part;
  const claim = pending.get(element);
  pending.delete(element);
  if (claim === undefined && !shares.tryTake([part])) {
    const made = shares.claim([part]);
    pending.set(element, made);
    // Here, because the call may have ended meanwhile.
    if (rule.kind === "cost") void made.ready.then(() => releaseGranted(made));
    return new Delay(made.ready);
  }
  if (claim !== undefined && claim.state !== "granted")
    return { waitMs: claim.refusal?.waitMs ?? RETRY_MS, error: claim.error };
  if (rule.kind !== "cost") return { budget: null };
  // Money was left. The call reserves what it needs when it is sent.
  if (claim === undefined) bucket.release(need);
  return { budget: { rule, bucket } };
}

function releaseGranted(claim: Claim): void {
  if (claim.state !== "granted") return;
  for (const { bucket, need } of claim.parts) bucket.release(need);
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
