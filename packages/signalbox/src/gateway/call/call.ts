/**
 * One call from its acceptance to its last byte: tries the steps in order, each as often as its policy allows, relays the response of the
 * one that succeeds, and records one row in the call log.
 *
 *                  ┌────────────── retry (after its delay), next step ──────────────┐
 *                  ▼                                                                │
 * States:  attempting ── attempt failed ──► nextMove (reliability/next-move.ts) ──► waiting
 *              │                               └─ end: the response as it is, or an error of the gateway ─► ended
 *              └── attempt answers ──► relaying ──► ended
 *                                          └─ the response breaks off: an error event, then the client's connection is closed
 *
 *   In `attempting` one attempt runs, or two with hedging; the first that answers wins, and the other is cancelled.
 *   From any state except `ended`, a disconnect of the client ends the call and aborts the attempts.
 *
 * Other parts of the gateway take part in an attempt at these points only:
 *
 *   step chosen → `CallAccount.admit` → `KeyPool.pick` → request sent → response ─┬─ failed: `KeyPool.report`, `AttemptReport`
 *                                                    (`Translation.convert`: both)  └─ answer: `KeyPool.report`
 *
 * Invariants:
 * 1. No attempt follows once the head of a response went to the client: `relaying` leads to `ended` only.
 * 2. The row is recorded before the last byte of the response is written, so a client that has read the end can read the row.
 * 3. When the client's socket is full, reading upstream pauses: a slow client does not fill the memory.
 * 4. `ended` is reached once; afterwards the call has no timer and no attempt.
 * 5. A step is admitted before its first attempt; one whose circuit is open is passed over while another step exists (`CallSteps`).
 */
import type { HttpResponse } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Placed } from "../../core/place-list.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";
import { BlockedResponse } from "../guardrails/blocked-response.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { Step } from "../step/step.ts";
import { type AnswerHold, ErrorHold, holdFor } from "../reliability/answer-hold.ts";
import {
  type AttemptFailure,
  mayHaveReason,
  statusFailure,
  toCallError,
} from "../reliability/attempt-failure.ts";
import { targetOf } from "../reliability/circuits.ts";
import { mayHedge, nextMove } from "../reliability/next-move.ts";
import { sendCut } from "../reliability/stream-error.ts";
import { Attempt, type AttemptOwner } from "./attempt.ts";
import type { AttemptReport } from "../reliability/attempt-report.ts";
import { sendCallError } from "./call-error.ts";
import { type CallOutcome, type CallParts, type CallStart, CLIENT_CLOSED } from "./call-start.ts";
import { CallSteps, type Prepared, type PreparedAttempt } from "./call-steps.ts";
import { ClientResponse } from "./client-response.ts";
import { PassingResponse } from "./passing-response.ts";

export class Call implements AttemptOwner, Placed {
  place = -1;
  readonly response: HttpResponse;
  readonly #parts: CallParts;
  readonly #start: CallStart;
  readonly #onEnded: (outcome: CallOutcome) => void;
  readonly #passing: PassingResponse;
  #state: "attempting" | "waiting" | "relaying" | "ended" = "attempting";
  readonly #steps: CallSteps;
  #current: Attempt | null = null;
  /** The second attempt of a hedged call. */
  #hedge: Attempt | null = null;
  #timer: NodeJS.Timeout | undefined;
  #overheadMs = 0;
  #answer: ClientResponse | null = null;

  /** Keeps at least `cacheBytes` of the response for the cache; `onEnded` is called once. */
  constructor(parts: CallParts, start: CallStart, cacheBytes: number, onEnded: (o: CallOutcome) => void) {
    this.#parts = parts;
    this.#start = start;
    this.#steps = new CallSteps(start, parts.circuits);
    this.#onEnded = onEnded;
    this.#passing = new PassingResponse(parts, start, cacheBytes);
    this.response = start.response;
    this.response.once("close", () => this.#onClientClose());
  }

  run(): void {
    if (this.response.destroyed) return this.#onClientClose();
    this.#overheadMs = performance.now() - this.#start.startedAt;
    this.#try();
  }

  /** Ends the call with an error of the gateway; when the response has begun, closes the connection instead. */
  refuse(error: SignalboxError): void {
    if (this.#state === "ended") return;
    const isRelaying = this.#state === "relaying";
    this.#abortAttempts();
    this.#end(isRelaying ? this.#statusOr(error.status) : error.status, false);
    if (isRelaying) this.response.destroy();
    else sendCallError(this.#start, this.#place, error);
  }

  /** Ends the call because the service stops: closes the client's connection. */
  cancel(): void {
    if (this.#state === "ended") return;
    this.#onClientClose();
    this.response.destroy();
  }

  get #step(): Step {
    return this.#steps.present;
  }

  /** The position of the current step in the caller's list. */
  get #place(): number {
    return this.#step.place ?? this.#steps.index;
  }

  /** Sends the next attempt of the current step, or of the first step behind it that may be sent. */
  #try(): void {
    const prepared = this.#steps.prepare();
    if (prepared instanceof Promise) this.#waitFor(prepared, (late) => this.#sendOrGoOn(late));
    else this.#sendOrGoOn(prepared);
  }

  #sendOrGoOn(prepared: Prepared): void {
    if (!(prepared instanceof SignalboxError)) return this.#send(prepared);
    const next = this.#steps.next();
    if (next instanceof Promise) this.#takeNextWhen(next, prepared);
    else if (next) this.#try();
    else this.refuse(prepared);
  }

  /** At once, or when the reservation of the attempt is written. */
  #send(prepared: PreparedAttempt): void {
    const { account } = this.#start;
    if (account === null) return this.#sendNow(prepared);
    const isWaiting = account.mustWait(() => {
      if (this.#state === "waiting") this.#sendNow(prepared);
    });
    if (isWaiting) this.#state = "waiting";
    else this.#sendNow(prepared);
  }

  #sendNow(prepared: PreparedAttempt): void {
    this.#state = "attempting";
    const attempt = new Attempt(this, prepared);
    this.#current = attempt;
    attempt.send(this.#parts.client);
    const { hedgeAfterMs } = prepared.step.policy;
    // An attempt may fail at once; the timer is that of the next one then.
    if (hedgeAfterMs !== null && this.#state === "attempting" && mayHedge(prepared.step.requestType))
      this.#hedgeLater(hedgeAfterMs);
  }

  /** A limit that nodes share decides later. */
  #waitFor<Answer>(answer: Promise<Answer>, goOn: (answer: Answer) => void): void {
    this.#state = "waiting";
    void answer.then((late) => {
      if (this.#state === "waiting") goOn(late);
    });
  }

  /** A route decides later whether there is another step. */
  #takeNextWhen(next: Promise<boolean>, error: SignalboxError): void {
    this.#waitFor(next, (found) => {
      if (found) this.#try();
      else this.refuse(this.#start.moreSteps?.refusal ?? error);
    });
  }

  #hedgeLater(ms: number): void {
    this.#timer = setTimeout(() => {
      if (this.#state !== "attempting" || this.#hedge !== null || !this.#canResend) return;
      // A hedge that would have to wait for a limit comes too late.
      const prepared = this.#steps.prepareBeside();
      if (prepared === null) return;
      this.#parts.metrics.retried(prepared.step.provider.slug);
      const attempt = new Attempt(this, prepared);
      this.#hedge = attempt;
      attempt.send(this.#parts.client);
    }, ms);
  }

  get #canResend(): boolean {
    return this.#step.upstream.body.kind !== "streamed";
  }

  onHead({ step, key }: Attempt, head: ResponseHead): AnswerHold | AttemptFailure | null {
    const hasOtherStep = this.#steps.hasOther;
    const { maxAttempts, firstTokenTimeoutMs, holdsResponse } = step.policy;
    if (head.status >= 400) {
      const failure = statusFailure(head, this.#parts.clock.now());
      const mayNameTime = head.status === 429 && failure.retryAfterMs === null;
      const isRead = (mayNameTime && key !== null) || this.#readsError(head.status, mayNameTime, maxAttempts);
      return isRead ? new ErrorHold(failure) : failure;
    }
    const isFinal = !hasOtherStep && this.#steps.attempts >= maxAttempts && this.#hedge === null;
    if ((isFinal || !this.#canResend) && firstTokenTimeoutMs === null && !holdsResponse) return null;
    return holdFor(head, step, this.#start.memory);
  }

  /** The body of an error that another attempt may replace: it may say why or when to try again, and under a limit what the attempt used. */
  #readsError(status: number, mayNameTime: boolean, maxAttempts: number): boolean {
    if (!this.#canResend) return false;
    if (this.#steps.hasOther && mayHaveReason(status)) return true;
    const isLast = !this.#steps.hasOther && this.#hedge === null && this.#steps.attempts >= maxAttempts;
    return (mayNameTime || this.#start.account !== null) && !isLast;
  }

  onFailed(attempt: Attempt, failure: AttemptFailure): boolean {
    const isCircuitOpen = this.#reportFailure(attempt, failure);
    if (this.#hedge !== null) {
      // The other attempt is still running, and may answer.
      this.#addReport(attempt, "failed", failure);
      attempt.abort();
      this.#current = attempt === this.#current ? this.#hedge : this.#current;
      this.#hedge = null;
      return true;
    }
    const move = nextMove({
      failure,
      policy: attempt.step.policy,
      attempt: this.#steps.attempts,
      canResend: this.#canResend,
      hasOtherKey: attempt.step.keys?.hasOther(failure.status) ?? false,
      hasOtherStep: this.#steps.hasOther,
      isCircuitOpen,
      random: Math.random(),
    });
    const next = move.kind === "retry" || (move.kind !== "end" && this.#steps.next());
    if (next !== false) {
      this.#addReport(attempt, "failed", failure);
      this.#abortAttempts();
      this.#parts.metrics.retried(attempt.step.provider.slug);
      this.#state = "waiting";
      if (next instanceof Promise) this.#takeNextWhen(next, toCallError(failure));
      else this.#timer = setTimeout(() => this.#try(), move.kind === "retry" ? move.delayMs : 0);
      return true;
    }
    if (failure.kind === "status" || failure.kind === "in_band") return false;
    if (failure.cause instanceof BlockedResponse) this.#passing.block(attempt.step, failure.cause);
    else this.#addReport(attempt, "failed", failure);
    this.refuse(toCallError(failure));
    return true;
  }

  /** Returns whether the circuit of the target is open now. */
  #reportFailure({ step, key }: Attempt, failure: AttemptFailure): boolean {
    if (key !== null) step.keys?.report(key, failure);
    return this.#parts.circuits.report(targetOf(this.#start.gateway, step, key), failure);
  }

  #addReport(attempt: Attempt, outcome: AttemptReport["outcome"], failure: AttemptFailure | null): void {
    const report = attempt.toReport(outcome, failure);
    (this.#passing.otherAttempts ??= []).push(report);
    if (outcome === "failed") this.#start.account?.attemptFailed(report);
  }

  #abortAttempts(): void {
    clearTimeout(this.#timer);
    this.#current?.abort();
    this.#hedge?.abort();
    this.#hedge = null;
  }

  onAnswer(attempt: Attempt, head: ResponseHead): boolean {
    clearTimeout(this.#timer);
    if (this.#hedge !== null) this.#dropLoser(attempt);
    this.#state = "relaying";
    this.#steps.endAt(attempt.stepIndex);
    const { step, key } = attempt;
    if (head.status < 400) {
      if (key !== null) step.keys?.report(key, { status: head.status, retryAfterMs: null });
      if (!this.#parts.circuits.isEmpty)
        this.#parts.circuits.succeeded(targetOf(this.#start.gateway, step, key));
      if (this.#steps.count > 1) this.#parts.latencies.add(this.#start.gateway, step, attempt.startedAt);
    }
    this.#passing.begin(step, head, attempt.converted?.tap ?? null);
    const client = new ClientResponse(this.#start, head, step, this.#place, this.#overheadMs);
    this.#answer = client;
    return !this.#isRefused(client.open());
  }

  #dropLoser(winner: Attempt): void {
    const loser = winner === this.#current ? this.#hedge : this.#current;
    this.#current = winner;
    this.#hedge = null;
    if (loser === null) return;
    this.#addReport(loser, "cancelled", null);
    loser.abort();
  }

  /** Ends the call if its head cannot be written. */
  #isRefused(error: SignalboxError | null): boolean {
    if (error === null) return false;
    this.#state = "attempting";
    this.refuse(error);
    return true;
  }

  onBody(received: Buffer, isLast: boolean): void {
    if (this.#state !== "relaying") return;
    const chunk = this.#passing.pass(received, isLast);
    const client = this.#answer;
    const fault = isLast ? this.#judge() : null;
    if (fault?.kind === "broken") return this.#cutAt(chunk, fault);
    if (client === null || client.holds(chunk, isLast)) return;
    if (client.isHeld && this.#isRefused(client.release(isLast ? this.#settle(true, false) : null))) return;
    if (isLast) {
      this.#end(this.#statusOr(0), true);
      client.end(chunk, this.#passing.spend);
    } else if (chunk.length > 0) client.write(chunk, this.#current);
  }

  /** The response has ended: if it is no answer, its target has failed, whatever its status is. */
  #judge(): AttemptFailure | null {
    const fault = this.#passing.judge();
    const attempt = this.#current;
    if (fault !== null && fault.kind !== "broken" && attempt !== null)
      this.#parts.circuits.report(targetOf(this.#start.gateway, attempt.step, attempt.key), fault);
    return fault;
  }

  /** A stream that the provider ended in the middle of its answer is one that broke off. */
  #cutAt(chunk: Buffer, failure: AttemptFailure): void {
    if (chunk.length > 0) this.#answer?.write(chunk, null);
    if (this.#current !== null) this.onCut(this.#current, failure);
  }

  onHeadAlone(): void {
    // A client that waits for a stream to open must not wait for its first event.
    if (this.#state === "relaying" && this.#answer?.isHeld === false) this.response.flushHeaders();
  }

  onCut(attempt: Attempt, failure: AttemptFailure): void {
    if (this.#state !== "relaying") return;
    this.#reportFailure(attempt, failure);
    const block = failure.cause instanceof BlockedResponse ? failure.cause : null;
    if (block !== null) this.#passing.block(attempt.step, block);
    this.#settle(false, false);
    const client = this.#answer;
    if (client?.isHeld === true && this.#isRefused(client.release(this.#passing.spend))) return;
    this.#end(this.#statusOr(0), false);
    sendCut(this.response, {
      head: this.#passing.head,
      dialect: attempt.step.translation?.clientDialect ?? attempt.step.requestType,
      lastChunk: this.#passing.lastChunk,
      converted: attempt.converted,
      isTimeout: failure.kind === "timeout",
      error: block?.error ?? null,
    });
  }

  #onClientClose(): void {
    if (this.#state === "ended") return;
    // Both attempts of a hedged call run on at their providers.
    if (this.#hedge !== null) this.#dropLoser(this.#hedge);
    const left = this.#state === "attempting" ? this.#current : null;
    if (left !== null) this.#steps.endAt(left.stepIndex);
    this.#abortAttempts();
    const status = this.#state === "relaying" ? this.#statusOr(CLIENT_CLOSED) : CLIENT_CLOSED;
    this.#settle(false, left !== null);
    this.#end(status, false, true);
  }

  #statusOr(status: number): number {
    return this.#passing.head?.status ?? status;
  }

  #settle(isComplete: boolean, isLeft: boolean): CallSpend {
    return this.#passing.settle(this.#step, isComplete, isLeft);
  }

  #end(status: number, isComplete: boolean, isAbandoned = false): void {
    this.#state = "ended";
    this.#steps.end();
    clearTimeout(this.#timer);
    const attemptStartedAt = this.#current?.startedAt ?? null;
    const ending = { status, isComplete, isAbandoned, attemptStartedAt };
    this.#onEnded(this.#passing.end(this.#step, this.#place, ending));
  }
}
