/**
 * Runs a planned call: counts it against the rate limit, waits for room in the log, answers it from the cache or reserves its money
 * and sends it upstream.
 *
 * Every call that was let in counts against the rate limit, also one that the cache then answers: the limit is about calls, not
 * about their price. A cached answer costs no money.
 */
import type { Clock } from "../../core/clock.ts";
import { PlaceList } from "../../core/place-list.ts";
import { ulid } from "../../core/ulid.ts";
import type { CallUsage } from "../../engines/call-log/index.ts";
import type { CachedResponse, LeaderOutcome, ResponseCache } from "../cache/response-cache.ts";
import type { RateLimits } from "../limits/rate-limits.ts";
import type { SpendLimits, SpendReservation } from "../limits/spend-limits.ts";
import { Call, type CallOutcome, type CallStart } from "./call.ts";
import { type CacheUse, planCacheUse, replay, variesBeyondKey } from "./call-cache.ts";
import type { CallParts } from "./call-parts.ts";
import type { Step } from "./step.ts";

export type PlannedCall = Omit<CallStart, "id" | "createdAt" | "cacheStatus">;

export interface CallRunnerParts extends CallParts {
  readonly clock: Clock;
  readonly cache: ResponseCache;
  readonly rateLimits: RateLimits;
  readonly spendLimits: SpendLimits;
}

type CacheTurn =
  | { readonly kind: "cached"; readonly response: CachedResponse }
  | { readonly kind: "lead"; readonly tell: (outcome: LeaderOutcome) => void }
  | { readonly kind: "alone" };

/** Bytes of JSON per token of input, low enough that the estimate is rarely short. */
const BYTES_PER_TOKEN = 3;
/** Output that is reserved for a call that sets no limit of its own. */
const ASSUMED_OUTPUT_TOKENS = 4096;

export class CallRunner {
  readonly #parts: CallRunnerParts;
  readonly #running = new PlaceList<Call>();

  constructor(parts: CallRunnerParts) {
    this.#parts = parts;
  }

  /** Gives the call once it is under way, or null when the cache answered; at once unless something must be waited for. */
  run(planned: PlannedCall): Call | null | Promise<Call | null> {
    const { sink, rateLimits, cache } = this.#parts;
    rateLimits.take(planned.gateway);
    const use = planCacheUse(cache, planned);
    if (use === null && sink.hasRoom) return this.#send(this.#startOf(planned, null), null, null);
    return this.#runLater(planned, use);
  }

  async #runLater(planned: PlannedCall, use: CacheUse | null): Promise<Call | null> {
    const { sink } = this.#parts;
    // A full log slows callers down rather than lose rows.
    if (!sink.hasRoom) await sink.whenRoom();
    if (use === null) return this.#send(this.#startOf(planned, null), null, null);
    const start = this.#startOf(planned, "MISS");
    const turn = await this.#takeTurn(use);
    const [step] = planned.steps;
    if (turn.kind === "cached" && step !== undefined) {
      if (!planned.response.destroyed) replay(this.#parts, start, step, turn.response);
      return null;
    }
    return this.#send(start, use, turn.kind === "lead" ? turn.tell : null);
  }

  #startOf(planned: PlannedCall, cacheStatus: CallStart["cacheStatus"]): CallStart {
    const now = this.#parts.clock.now();
    return { ...planned, id: ulid(now), createdAt: now, cacheStatus };
  }

  /** Ends what still runs; after it no call writes to the log. */
  close(): void {
    for (const call of this.#running.all()) call.cancel();
  }

  /** From the cache, or first in line to go upstream; waits while the same request is there already. */
  async #takeTurn({ key }: CacheUse): Promise<CacheTurn> {
    const { cache } = this.#parts;
    for (;;) {
      const response = cache.find(key);
      if (response !== undefined) return { kind: "cached", response };
      const leader = cache.leaderOf(key);
      // Looking and taking the lead are one step, or two that were woken together would both go.
      if (leader === undefined) return { kind: "lead", tell: cache.lead(key) };
      // Waiting in line behind one failing call after the other would add their times up.
      if ((await leader) === "uncacheable") return { kind: "alone" };
    }
  }

  #send(start: CallStart, use: CacheUse | null, lead: ((outcome: LeaderOutcome) => void) | null): Call {
    const { metrics, cache } = this.#parts;
    let money: SpendReservation | null;
    try {
      money = this.#reserve(start);
    } catch (error) {
      lead?.("abandoned");
      throw error;
    }
    metrics.inFlight += 1;
    const call = new Call(this.#parts, start, use === null ? 0 : cache.maxEntryBytes, (outcome) => {
      this.#running.delete(call);
      metrics.inFlight -= 1;
      money?.settle(outcome.cost);
      if (use !== null) this.#keep(use, lead, outcome);
    });
    this.#running.add(call);
    metrics.overhead(performance.now() - start.startedAt);
    call.run();
    return call;
  }

  #keep(use: CacheUse, lead: ((outcome: LeaderOutcome) => void) | null, outcome: CallOutcome): void {
    const { head, body, usage } = outcome;
    const { cache } = this.#parts;
    if (
      outcome.status === 200 &&
      head !== null &&
      body !== null &&
      body.length <= cache.maxEntryBytes &&
      !variesBeyondKey(head)
    ) {
      // Set before the others are told: they look into the cache next.
      cache.store(use.key, { head, body: Buffer.from(body), usage }, use.ttlMs);
      lead?.("stored");
    } else {
      lead?.(outcome.isAbandoned ? "abandoned" : "uncacheable");
    }
  }

  #reserve(start: CallStart): SpendReservation | null {
    const { gateway, options, steps } = start;
    const limits = gateway.settings.spend_limits;
    const [step] = steps;
    if (limits === null || step === undefined) return null;
    return this.#parts.spendLimits.reserve({
      gateway,
      provider: step.provider.slug,
      model: step.model,
      metadata: options.metadata ?? null,
      estimate: this.#estimate(start, step),
      isBounded:
        step.facts.maxOutputTokens !== null ||
        (options.customCost !== undefined && "total" in options.customCost),
    });
  }

  #estimate({ options }: CallStart, step: Step): number | null {
    const { body } = step.upstream;
    const bytes =
      body.kind === "whole" ? body.bytes.length : body.kind === "streamed" ? (body.length ?? 0) : 0;
    const usage: CallUsage = {
      tokensIn: Math.ceil(bytes / BYTES_PER_TOKEN),
      tokensOut: step.facts.maxOutputTokens ?? ASSUMED_OUTPUT_TOKENS,
      tokensInCached: 0,
      tokensInCacheWrite: 0,
      tokensOutReasoning: 0,
    };
    const custom = options.customCost;
    if (custom === undefined) return this.#parts.costOf(step.provider.slug, step.model, usage);
    return "total" in custom
      ? custom.total
      : custom.perTokenIn * usage.tokensIn + custom.perTokenOut * usage.tokensOut;
  }
}
