/**
 * Runs a planned call: counts it against the rate limit, waits until the call log has room, and answers it from the cache or reserves its
 * cost and sends it upstream.
 *
 * The rate limit counts every accepted call, including those that the cache answers. A cached response costs nothing.
 */
import type { SignalboxError } from "@signalbox/protocol";
import { PlaceList } from "../../core/place-list.ts";
import { ulid } from "../../core/ulid.ts";
import type { HttpResponse } from "../../engines/http-server/index.ts";
import { NO_USAGE, type Usage } from "../../engines/relay/index.ts";
import { type CacheUse, planCacheUse, variesBeyondKey } from "../cache/cache-use.ts";
import type { CachedResponse, LeaderOutcome, ResponseCache } from "../cache/response-cache.ts";
import type { RateLimits } from "../limits/rate-limits.ts";
import type { SpendLimits, SpendReservation } from "../limits/spend-limits.ts";
import { StepBudget } from "../limits/step-budget.ts";
import type { Step } from "../plan/plan-step.ts";
import { Call } from "./call.ts";
import { recordCall } from "./call-record.ts";
import type { CallOutcome, CallParts, CallStart, LogDetail } from "./call-start.ts";
import { toClientHeaders } from "./response-headers.ts";

export type PlannedCall = Omit<CallStart, "id" | "createdAt" | "cacheStatus" | "logDetail">;

export interface CallRunnerParts extends CallParts {
  readonly cache: ResponseCache;
  readonly rateLimits: RateLimits;
  readonly spendLimits: SpendLimits;
}

/** `lead`: the call goes upstream for all waiting calls with its key; `alone`: it goes upstream for itself. */
type CacheTurn =
  | { readonly kind: "cached"; readonly response: CachedResponse }
  | { readonly kind: "lead"; readonly report: (outcome: LeaderOutcome) => void }
  | { readonly kind: "alone" };

/** Bytes of JSON per input token, low enough that the estimate is rarely too small. */
const BYTES_PER_TOKEN = 3;
/** Output that is reserved for a call without an output limit. */
const ASSUMED_OUTPUT_TOKENS = 4096;

export class CallRunner {
  readonly #parts: CallRunnerParts;
  readonly #running = new PlaceList<Call>();

  constructor(parts: CallRunnerParts) {
    this.#parts = parts;
  }

  /** Ends, or resolves, when the call is under way upstream or answered from the cache. */
  run(planned: PlannedCall): void | Promise<void> {
    const { callLog, rateLimits, cache } = this.#parts;
    rateLimits.take(planned.gateway);
    const use = wantsCache(planned) ? planCacheUse(cache, planned) : null;
    if (use === null && callLog.hasRoom) this.#send(this.#startOf(planned, null), null, null);
    else return this.#runLater(planned, use);
  }

  async #runLater(planned: PlannedCall, use: CacheUse | null): Promise<void> {
    const { callLog } = this.#parts;
    // A full log delays calls; rows are not dropped.
    if (!callLog.hasRoom) await callLog.whenRoom();
    const start = this.#startOf(planned, use === null ? null : "MISS");
    const [step] = planned.steps;
    if (use === null || step === undefined) {
      this.#send(start, null, null);
      return;
    }
    const turn = await this.#takeTurn(use.key);
    if (turn.kind !== "cached") this.#send(start, use, turn.kind === "lead" ? turn.report : null);
    else if (!planned.response.destroyed) this.#replay(start, step, turn.response);
  }

  /** Ends the running call that answers with `response`, if there is one. */
  refuse(response: HttpResponse, error: SignalboxError): void {
    for (const call of this.#running.all()) if (call.response === response) call.refuse(error);
  }

  /** Ends all running calls; no call writes to the log afterwards. */
  close(): void {
    for (const call of this.#running.all()) call.cancel();
  }

  #startOf(planned: PlannedCall, cacheStatus: CallStart["cacheStatus"]): CallStart {
    const now = this.#parts.clock.now();
    return { ...planned, id: ulid(now), createdAt: now, cacheStatus, logDetail: logDetailOf(planned) };
  }

  /** Finds the response in the cache, or the right to go upstream; waits while a call with this key is upstream. */
  async #takeTurn(key: string): Promise<CacheTurn> {
    const { cache } = this.#parts;
    for (;;) {
      const response = cache.find(key);
      if (response !== undefined) return { kind: "cached", response };
      const leader = cache.leaderOf(key);
      // No await between the look-up and `lead`, or two calls that resumed together would both go upstream.
      if (leader === undefined) return { kind: "lead", report: cache.lead(key) };
      // Waiting for one failing call after another would add up their times.
      if ((await leader) === "uncacheable") return { kind: "alone" };
    }
  }

  #send(start: CallStart, use: CacheUse | null, report: ((outcome: LeaderOutcome) => void) | null): void {
    const { metrics, cache } = this.#parts;
    // The steps of a route are reserved one by one: one that its budget does not cover goes to its fallback.
    const budget =
      start.moreSteps === undefined
        ? null
        : new StepBudget((step) => this.#reserve({ ...start, steps: [step] }));
    let reservation: SpendReservation | null;
    try {
      reservation = budget === null ? this.#reserve(start) : null;
    } catch (error) {
      report?.("abandoned");
      throw error;
    }
    metrics.inFlight += 1;
    const sent = budget === null ? start : { ...start, admission: budget };
    const call = new Call(this.#parts, sent, use === null ? 0 : cache.maxEntryBytes, (outcome) => {
      this.#running.delete(call);
      metrics.inFlight -= 1;
      reservation?.settle(outcome.cost);
      budget?.settle(outcome.step, outcome.cost);
      start.onCost?.(outcome.cost);
      if (use !== null) {
        const isStored = this.#store(use, outcome);
        report?.(isStored ? "stored" : outcome.isAbandoned ? "abandoned" : "uncacheable");
      }
    });
    this.#running.add(call);
    metrics.overhead(performance.now() - start.startedAt);
    call.run();
  }

  /** False when the response may not be cached. */
  #store(use: CacheUse, { status, head, body, usage }: CallOutcome): boolean {
    const { cache } = this.#parts;
    if (status !== 200 || head === null || body === null) return false;
    if (body.length > cache.maxEntryBytes || variesBeyondKey(head)) return false;
    cache.store(use.key, { head, body: Buffer.from(body), usage }, use.ttlMs);
    return true;
  }

  #replay(start: CallStart, step: Step, { head, body, usage }: CachedResponse): void {
    const { response } = start;
    const firstByteMs = performance.now() - start.startedAt;
    this.#parts.metrics.ended(step.provider.slug, head.status, firstByteMs, usage, 0, true);
    recordCall(this.#parts, start, {
      step,
      stepIndex: 0,
      model: step.model,
      status: head.status,
      isComplete: true,
      isCached: true,
      head,
      firstByteMs,
      usage,
      cost: 0,
      responseBytes: body.length,
      body,
    });
    const headers = toClientHeaders(head, {
      logId: start.logDetail === "none" ? null : start.id,
      cacheStatus: "HIT",
      step: start.showsStep ? 0 : null,
      errorOrigin: null,
      door: step.door,
    });
    response.writeHead(head.status, headers);
    response.end(body);
  }

  #reserve({ gateway, options, steps }: CallStart): SpendReservation | null {
    const [step] = steps;
    if (gateway.settings.spend_limits === null || step === undefined) return null;
    const { customCost } = options;
    return this.#parts.spendLimits.reserve({
      gateway,
      provider: step.provider.slug,
      model: step.model,
      metadata: options.metadata ?? null,
      estimate: this.#parts.prices.costOf(step.provider.slug, step.model, estimateUsage(step), customCost),
      isBounded: step.maxOutputTokens !== null || (customCost !== undefined && "total" in customCost),
    });
  }
}

/** Neither the call nor its gateway asks for the cache in the usual case. */
function wantsCache({ options, gateway }: PlannedCall): boolean {
  return (
    options.cacheTtlS !== undefined || options.cacheKey !== undefined || (gateway.settings.cache_ttl ?? 0) > 0
  );
}

function logDetailOf({ options, gateway }: PlannedCall): LogDetail {
  if (!(options.collectLog ?? gateway.settings.collect_logs)) return "none";
  return options.collectLogPayload === false ? "row" : "bodies";
}

/** The most tokens that the step is expected to use. */
function estimateUsage({ upstream: { body }, maxOutputTokens }: Step): Usage {
  const bytes = body.kind === "whole" ? body.bytes.length : body.kind === "streamed" ? (body.length ?? 0) : 0;
  return {
    ...NO_USAGE,
    tokensIn: Math.ceil(bytes / BYTES_PER_TOKEN),
    tokensOut: maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS,
  };
}
