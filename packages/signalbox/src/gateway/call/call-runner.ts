/**
 * Runs a planned call: counts it against limits of requests, waits until the call log has room, and answers it from the cache or reserves
 * its cost and sends it upstream.
 *
 * Limits of requests count every accepted call, including those that the cache answers, and every further attempt upstream. A cached
 * response costs nothing.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Token } from "../../accounts/index.ts";
import { PlaceList } from "../../core/place-list.ts";
import { ulid } from "../../core/ulid.ts";
import type { AlertFeed } from "../../contracts/alert-feed.ts";
import type { HttpResponse } from "../../engines/http-server/index.ts";
import { NO_USAGE } from "../../engines/relay/index.ts";
import { CallGuard } from "../guardrails/call-guard.ts";
import type { Guardrails } from "../guardrails/guardrails.ts";
import type { JudgedCall, Judges } from "../guardrails/judges.ts";
import type { RuleSet } from "../guardrails/rule-set.ts";
import { type CacheUse, planCacheUse, variesBeyondKey } from "./cache-use.ts";
import type { CachedResponse, LeaderOutcome, ResponseCache } from "../cache/response-cache.ts";
import { type Admission, CallAccount } from "../limits/call-account.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { Limits } from "../limits/limits.ts";
import { pricingOf } from "../limits/step-price.ts";
import { faultOf } from "../reliability/answer-check.ts";
import type { Step } from "../step/step.ts";
import { Call } from "./call.ts";
import { logDetailOf, recordCall } from "./call-record.ts";
import {
  type CallOutcome,
  type CallParts,
  type CallStart,
  CLIENT_CLOSED,
  type PlannedCall,
} from "./call-start.ts";
import { callerShare, type ShareParts } from "./caller-share.ts";
import { noteFindings } from "./note-findings.ts";
import type { ResumableRuns } from "./resumable-runs.ts";
import { addRouteHeaders, addSpendHeaders, toClientHeaders } from "./response-headers.ts";

export interface CallRunnerParts extends CallParts, ShareParts {
  readonly runs: ResumableRuns;
  readonly cache: ResponseCache;
  readonly limits: Limits;
  readonly guardrails: Guardrails;
  readonly judges: Judges;
  readonly findToken: (accountId: string, tokenId: string) => Token | undefined;
}

const NO_BYTES = Buffer.from("");

/** `lead`: the call goes upstream for all waiting calls with its key; `alone`: it goes upstream for itself. */
type CacheTurn =
  | { readonly kind: "cached"; readonly response: CachedResponse }
  | { readonly kind: "lead"; readonly report: (outcome: LeaderOutcome) => void }
  | { readonly kind: "alone" };

export class CallRunner {
  readonly #parts: CallRunnerParts;
  readonly #running = new PlaceList<Call>();

  constructor(parts: CallRunnerParts) {
    this.#parts = parts;
  }

  /** Ends, or resolves, when the call is under way upstream or answered from the cache. */
  run(planned: PlannedCall): void | Promise<void> {
    const { runs } = this.#parts;
    return planned.options.isResumable === true
      ? runs.run(planned, (call) => this.#run(call))
      : this.#run(planned);
  }

  #run(planned: PlannedCall): void | Promise<void> {
    const account = this.#accountOf(planned);
    // Counts the call. Everything is checked before anything is counted.
    const admission: Admission = account === null ? null : account.arrive(planned.steps);
    if (admission instanceof Promise)
      return admission.then((refusal) => this.#runArrived(planned, account, refusal));
    return this.#runArrived(planned, account, admission);
  }

  /** The call is counted, and may have a place among parallel calls: whatever fails before it goes upstream gives that back. */
  #runArrived(
    planned: PlannedCall,
    account: CallAccount | null,
    refusal: SignalboxError | null,
  ): void | Promise<void> {
    if (refusal !== null) throw refusal;
    try {
      const running = this.#runCounted(planned, account);
      return running?.catch((error: unknown) => giveBack(planned, account, error));
    } catch (error) {
      return giveBack(planned, account, error);
    }
  }

  #runCounted(planned: PlannedCall, account: CallAccount | null): void | Promise<void> {
    const { callLog, cache } = this.#parts;
    const rules = this.#parts.guardrails.rulesFor(
      planned.gateway,
      planned.caller.token,
      planned.options.guardrails,
    );
    if (rules !== null && !planned.context.staysInside) return this.#runGuarded(planned, account, rules);
    const use = wantsCache(planned) ? planCacheUse(cache, planned) : null;
    if (use === null && callLog.hasRoom) return this.#send(this.#startOf(planned, account, null), null, null);
    return this.#runLater(planned, account, use);
  }

  /** Searches all known steps before the cache is asked: an answer is not given to a prompt that may not be asked. */
  async #runGuarded(planned: PlannedCall, account: CallAccount | null, rules: RuleSet): Promise<void> {
    const { judges } = this.#parts;
    const guard = new CallGuard(rules, callerShare(this.#parts, planned), {
      judges,
      call: judgedCallOf(planned, planned.options.metadata ?? null),
    });
    if (rules.hasJudges) planned.response.once("close", () => guard.end());
    const guarded = { ...planned, guard };
    await guard.begin(planned.steps);
    const steps: Step[] = [];
    try {
      for (const step of planned.steps) steps.push(await guard.guard(step));
      await guard.judge(steps);
    } catch (error) {
      const isRecorded = guard.action === "block" || guard.hasEnded;
      if (!(error instanceof SignalboxError) || !isRecorded) throw error;
      return this.#refuseBlocked(guarded, account, error);
    }
    // The key has the request as it came, and what was masked in it: calls that differ in either share no answer.
    const scope = `${guard.fingerprint} ${guard.findings.maskKey}`;
    const use = wantsCache(planned) ? planCacheUse(this.#parts.cache, planned, scope) : null;
    const moreSteps = planned.moreSteps === undefined ? undefined : guard.guardSource(planned.moreSteps);
    return this.#runLater({ ...guarded, steps, moreSteps }, account, use);
  }

  /** A blocked prompt, and one whose caller left before its verdict, has a row and costs nothing. */
  async #refuseBlocked(
    planned: PlannedCall,
    account: CallAccount | null,
    error: SignalboxError,
  ): Promise<never> {
    const { callLog } = this.#parts;
    if (!callLog.hasRoom) await callLog.whenRoom();
    const start = this.#startOf(planned, account, null);
    const [step] = start.steps;
    if (step === undefined) throw error;
    const isAbandoned = planned.guard?.hasEnded === true;
    const status = isAbandoned ? CLIENT_CLOSED : error.status;
    const outcome = { ...refusedOutcome(step, status), isAbandoned };
    recordCall(this.#parts, start, outcome);
    this.#parts.tracing.current?.ended(start, outcome);
    this.#noteFindings(start);
    const headers: Record<string, string> = start.logDetail === "none" ? {} : { "gw-aig-log-id": start.id };
    const own = start.guard?.headers ?? [];
    for (let i = 0; i + 1 < own.length; i += 2) headers[own[i] ?? ""] = own[i + 1] ?? "";
    throw new SignalboxError(error.id, { message: error.message, headers });
  }

  async #runLater(planned: PlannedCall, account: CallAccount | null, use: CacheUse | null): Promise<void> {
    const { callLog } = this.#parts;
    const [step] = planned.steps;
    // A full log delays calls; rows are not dropped.
    if (!callLog.hasRoom) await callLog.whenRoom();
    const start = this.#startOf(planned, account, use === null ? null : "MISS");
    const turn: CacheTurn =
      use === null || step === undefined ? { kind: "alone" } : await this.#takeTurn(use.key);
    if (turn.kind === "cached") {
      if (step !== undefined && !planned.response.destroyed) this.#replay(start, step, turn.response);
      if (step !== undefined) account?.settle(step, null, null);
      return;
    }
    const report = turn.kind === "lead" ? turn.report : null;
    try {
      await this.#send(start, use, report);
    } catch (error) {
      // Calls with the same key wait for this one.
      report?.("abandoned");
      throw error;
    }
  }

  /** Ends the running call that answers with `response`, if there is one. */
  refuse(response: HttpResponse, error: SignalboxError): void {
    for (const call of this.#running.all()) if (call.response === response) call.refuse(error);
  }

  /** Ends all running calls; no call writes to the log afterwards. */
  close(): void {
    for (const call of this.#running.all()) call.cancel();
  }

  #startOf(
    planned: PlannedCall,
    account: CallAccount | null,
    cacheStatus: CallStart["cacheStatus"],
  ): CallStart {
    const now = this.#parts.clock.now();
    return {
      ...planned,
      id: ulid(now),
      createdAt: now,
      account,
      cacheStatus,
      logDetail: logDetailOf(planned),
    };
  }

  /** Null for a call without limits. */
  #accountOf(planned: PlannedCall): CallAccount | null {
    const { limits } = this.#parts;
    const { gateway, options, caller, budgets } = planned;
    const { chargedTo } = planned.context;
    const tokenId = chargedTo === undefined ? caller.tokenId : chargedTo.tokenId;
    const payer =
      chargedTo === undefined || tokenId === null
        ? undefined
        : this.#parts.findToken(gateway.accountId, tokenId);
    const token = chargedTo === undefined ? caller.token : (payer ?? null);
    // The usual call has no limits, and pays five comparisons for that.
    const mayHaveRules =
      gateway.settings.spend_limits !== null ||
      gateway.settings.rate_limiting_limit !== null ||
      token?.policy != null ||
      limits.accountRules.size > 0 ||
      budgets !== undefined;
    const rules = mayHaveRules ? limits.rulesOf(gateway, token, budgets) : null;
    if (rules === null) return null;
    rules.setMetadata(options.metadata ?? null);
    if (chargedTo !== undefined) rules.leaveUncounted();
    const pricing = pricingOf(this.#parts.prices, { gateway, options, token, tokenId });
    return new CallAccount({ rules, pricing });
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

  #send(
    start: CallStart,
    use: CacheUse | null,
    report: ((outcome: LeaderOutcome) => void) | null,
  ): void | Promise<void> {
    const [step] = start.steps;
    const isOnly = step !== undefined && start.steps.length === 1 && start.moreSteps === undefined;
    // A call with one step is refused here, without a row in the log; one with several may have a step that fits.
    const admission = start.account !== null && isOnly ? start.account.admit(step, 0) : null;
    if (admission instanceof Promise)
      return admission.then((refusal) => this.#sendAdmitted(start, use, report, refusal));
    return this.#sendAdmitted(start, use, report, admission);
  }

  #sendAdmitted(
    start: CallStart,
    use: CacheUse | null,
    report: ((outcome: LeaderOutcome) => void) | null,
    refusal: SignalboxError | null,
  ): void {
    if (refusal !== null) throw refusal;
    const { metrics, cache } = this.#parts;
    const call = new Call(this.#parts, start, use === null ? 0 : cache.maxEntryBytes, (outcome) => {
      this.#running.delete(call);
      metrics.inFlight -= 1;
      start.onEnded?.(outcome);
      this.#parts.tracing.current?.ended(start, outcome);
      if (this.#parts.alertFeed.current !== null)
        this.#reportTo(this.#parts.alertFeed.current, start, outcome);
      this.#noteFindings(start);
      if (use !== null) {
        const isStored = this.#store(use, outcome);
        report?.(isStored ? "stored" : outcome.isAbandoned ? "abandoned" : "uncacheable");
      }
    });
    start.account?.begin();
    metrics.inFlight += 1;
    this.#running.add(call);
    metrics.overhead(performance.now() - start.startedAt);
    call.run();
  }

  /** A client that left is no failure of the call. */
  #reportTo(feed: AlertFeed, { gateway, startedAt }: CallStart, outcome: CallOutcome): void {
    const { status, isComplete, isAnswer, isAbandoned, step, spend } = outcome;
    feed.call({
      accountId: gateway.accountId,
      gatewayId: gateway.id,
      provider: step.provider.slug,
      isFailed: !isAbandoned && (!isComplete || !isAnswer || status >= 400),
      durationMs: performance.now() - startedAt,
      cost: spend.cost ?? 0,
    });
  }

  #noteFindings({ guard, gateway }: CallStart): void {
    if (guard === undefined || guard.action === null) return;
    noteFindings(this.#parts, gateway, guard.findings);
  }

  /** False when the response may not be cached. */
  #store(
    use: CacheUse,
    { status, head, body, isBodyWhole, isAnswer, spend: { usage } }: CallOutcome,
  ): boolean {
    const { cache } = this.#parts;
    if (status !== 200 || head === null || !isBodyWhole || !isAnswer) return false;
    if (body.length > cache.maxEntryBytes || variesBeyondKey(head)) return false;
    if (faultOf(head, body) !== null) return false;
    cache.store(use.key, { head, body: Buffer.from(body), usage }, use.ttlMs);
    return true;
  }

  #replay(start: CallStart, step: Step, { head, body, usage }: CachedResponse): void {
    const { response } = start;
    const firstByteMs = performance.now() - start.startedAt;
    const spend: CallSpend = {
      state: "reported",
      usage,
      model: step.model,
      named: null,
      cost: 0,
      isCostEstimated: false,
      isCustomCost: false,
    };
    this.#parts.metrics.ended(step.provider.slug, head.status, firstByteMs, null);
    const outcome: CallOutcome = {
      step,
      place: 0,
      status: head.status,
      isComplete: true,
      isAnswer: true,
      isAbandoned: false,
      isCached: true,
      head,
      spend,
      responseBytes: body.length,
      body,
      isBodyWhole: true,
      firstByteMs,
      otherAttempts: null,
      attemptStartedAt: null,
    };
    recordCall(this.#parts, start, outcome);
    this.#noteFindings(start);
    // The tokens were used by the call that filled the cache.
    this.#parts.tracing.current?.ended(start, { ...outcome, spend: { ...spend, state: "none" } });
    const headers = toClientHeaders(head, {
      id: start.id,
      isLogged: start.logDetail !== "none",
      cacheStatus: "HIT",
      step: start.showsStep ? 0 : null,
      errorOrigin: null,
      translation: step.translation,
    });
    addRouteHeaders(headers, start, step);
    addSpendHeaders(headers, {
      provider: step.provider.slug,
      model: step.model,
      overheadMs: firstByteMs,
      spend,
      remaining: start.account?.remaining(step) ?? null,
    });
    if (start.guard !== undefined) headers.push(...start.guard.headers);
    response.writeHead(head.status, headers);
    response.end(body);
  }
}

/** The call that judges are asked about. */
export function judgedCallOf(
  { gateway, caller }: Pick<PlannedCall, "gateway" | "caller">,
  metadata: string | null,
): JudgedCall {
  return { accountId: gateway.accountId, gatewayId: gateway.id, tokenId: caller.tokenId, metadata };
}

function refusedOutcome(step: Step, status: number): CallOutcome {
  return {
    step,
    place: step.place ?? 0,
    status,
    isComplete: false,
    isAnswer: false,
    isAbandoned: false,
    isCached: false,
    head: null,
    spend: {
      state: "none",
      usage: NO_USAGE,
      model: step.model,
      named: null,
      cost: 0,
      isCostEstimated: false,
      isCustomCost: false,
    },
    responseBytes: 0,
    body: NO_BYTES,
    isBodyWhole: true,
    firstByteMs: null,
    otherAttempts: null,
    attemptStartedAt: null,
  };
}

function giveBack({ steps: [step] }: PlannedCall, account: CallAccount | null, error: unknown): never {
  if (step !== undefined) account?.giveUp(step);
  throw error;
}

/** Neither the call nor its gateway asks for the cache in the usual case. */
function wantsCache({ options, gateway }: PlannedCall): boolean {
  return (
    options.cacheTtlS !== undefined || options.cacheKey !== undefined || (gateway.settings.cache_ttl ?? 0) > 0
  );
}
