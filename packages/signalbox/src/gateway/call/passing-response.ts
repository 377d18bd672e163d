/** The response of a call as it passes to the client: what is read from it and kept of it, and what is known of the call when it ends. */
import { createUsageTap, KeptBody, type ResponseHead, type UsageTap } from "../../engines/relay/index.ts";
import type { BlockedResponse } from "../guardrails/blocked-response.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import { PassingEnds } from "../reliability/answer-check.ts";
import { mustAnswer } from "../reliability/answer-hold.ts";
import type { AttemptFailure } from "../reliability/attempt-failure.ts";
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { ResponseFilter, Step } from "../step/step.ts";
import { recordCall } from "./call-record.ts";
import type { CallOutcome, CallParts, CallStart } from "./call-start.ts";
import { measureCall } from "./measure-call.ts";

/** Of a response under limits: enough to estimate its output, if its usage is not reported. */
const ESTIMATED_BYTES = 64 * 1024;

export class PassingResponse {
  head: ResponseHead | null = null;
  /** Null until the call is settled. */
  spend: CallSpend | null = null;
  lastChunk: Buffer | null = null;
  /** Attempts before and beside the one that answered; null when there were none. */
  otherAttempts: AttemptReport[] | null = null;
  readonly #parts: CallParts;
  readonly #start: CallStart;
  readonly #kept: KeptBody;
  #tap: UsageTap | null = null;
  #filter: ResponseFilter | null = null;
  #firstByteMs: number | null = null;
  #bytes = 0;
  #withheld = 0;
  /** Of a response that must be an answer. */
  #ends: PassingEnds | null = null;
  #fault: AttemptFailure | null = null;

  /** Keeps at least `cacheBytes` of the response for the cache. */
  constructor(parts: CallParts, start: CallStart, cacheBytes: number) {
    this.#parts = parts;
    this.#start = start;
    const logBytes = start.logDetail === "bodies" ? parts.payloadBytes : 0;
    const isRead = start.account !== null || start.onEnded !== undefined;
    const keptBytes = Math.max(cacheBytes, logBytes, isRead ? ESTIMATED_BYTES : 0);
    this.#kept = new KeptBody(keptBytes, start.memory);
  }

  /** `tap` reads the usage of a translated response. */
  begin(step: Step, head: ResponseHead, tap: UsageTap | null): void {
    this.head = head;
    this.#firstByteMs = performance.now() - this.#start.startedAt;
    if (step.requestType !== "models") {
      this.#tap = tap ?? createUsageTap(head.contentType, wantsModel(this.#parts, this.#start, step));
    }
    this.#filter = step.filter?.(head) ?? null;
    if (mustAnswer(head, step)) this.#ends = new PassingEnds(head);
  }

  /** A guardrail refuses the response. What it used is read from the bytes that were withheld. */
  block(step: Step, { head, tap, withheldBytes }: BlockedResponse): void {
    if (this.head === null) this.begin(step, head, tap);
    else this.#tap = tap;
    this.#withheld = withheldBytes;
  }

  /** Why the response is no answer; null if it is one. Asked when the last byte has passed, before the call is settled. */
  judge(): AttemptFailure | null {
    if (this.#ends !== null) this.#fault = this.#ends.fault();
    return this.#fault;
  }

  /** Returns what the client receives of these bytes. */
  pass(received: Buffer, isLast: boolean): Buffer {
    if (received.length > 0) this.#tap?.push(received);
    const chunk = this.#filter === null ? received : this.#filter.push(received, isLast);
    if (chunk.length > 0) {
      this.#bytes += chunk.length;
      this.lastChunk = chunk;
      this.#ends?.push(chunk);
      this.#kept.add(chunk, isLast);
    }
    return chunk;
  }

  /** Determines what the call used and cost, once, and charges its limits. */
  settle(step: Step, isComplete: boolean, isLeft: boolean): CallSpend {
    if (this.spend !== null) return this.spend;
    const spend = measureCall(this.#parts, this.#start, {
      step,
      head: this.head,
      tapped: this.#tap?.end() ?? null,
      isComplete,
      isAnswer: this.#fault === null,
      isLeft,
      kept: this.#kept.bytes,
      responseBytes: this.#bytes + this.#withheld,
    });
    const charged = this.#start.account?.settle(step, spend, this.otherAttempts);
    this.spend = charged === undefined ? spend : asCharged(spend, charged);
    return this.spend;
  }

  /** Records the call. */
  end(
    step: Step,
    place: number,
    ending: Pick<CallOutcome, "status" | "isComplete" | "isAbandoned" | "attemptStartedAt">,
  ): CallOutcome {
    const { status, isComplete, isAbandoned, attemptStartedAt } = ending;
    const spend = this.settle(step, isComplete, false);
    const outcome: CallOutcome = {
      step,
      place,
      status,
      isComplete,
      isAnswer: this.#fault === null,
      isAbandoned,
      isCached: false,
      head: this.head,
      spend,
      responseBytes: this.#bytes,
      body: this.#kept.take(),
      isBodyWhole: this.#kept.isWhole && isComplete,
      firstByteMs: this.#firstByteMs,
      otherAttempts: this.otherAttempts,
      attemptStartedAt,
    };
    this.#parts.metrics.ended(step.provider.slug, status, this.#firstByteMs, spend);
    recordCall(this.#parts, this.#start, outcome);
    return outcome;
  }
}

/**
 * The row of a call under limits has the cost that its limits were charged with, so that the sum of the rows is what a budget shows: with the other
 * attempts of the call, and for a call whose usage is unknown with what was reserved. A price that the caller states is shown in any case.
 */
function asCharged(spend: CallSpend, charged: number): CallSpend {
  if (spend.isCustomCost || spend.cost === charged || (spend.cost === null && charged === 0)) return spend;
  return { ...spend, cost: charged, isCostEstimated: spend.isCostEstimated || spend.cost === null };
}

/** Whether the model that the response names is needed: for the row, or for the price. */
function wantsModel({ prices }: CallParts, { account, gateway }: CallStart, step: Step): boolean {
  return (
    step.model === "" ||
    account?.wantsModel(step) === true ||
    prices.needsOtherName(step.provider.slug, step.model, prices.ofAccount(gateway.accountId))
  );
}
