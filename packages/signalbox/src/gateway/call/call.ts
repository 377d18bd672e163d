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
 * Invariants:
 * 1. No attempt follows once the head of a response went to the client: `relaying` leads to `ended` only.
 * 2. The row is recorded before the last byte of the response is written, so a client that has read the end can read the row.
 * 3. When the client's socket is full, reading upstream pauses: a slow client does not fill the memory.
 * 4. `ended` is reached once; afterwards the call has no timer and no attempt.
 * 5. A step is admitted once, before its first attempt; one whose circuit is open is skipped while another step exists.
 */
import type { HttpResponse } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Placed } from "../../core/place-list.ts";
import {
  createUsageTap,
  KeptBody,
  NO_USAGE,
  type ResponseHead,
  type UsageTap,
} from "../../engines/relay/index.ts";
import type { Step } from "../plan/plan-step.ts";
import type { PickedKey } from "../plan/key-pool.ts";
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
import type { AttemptReport } from "./attempt-seams.ts";
import { sendCallError } from "./call-error.ts";
import { recordCall } from "./call-record.ts";
import type { CallOutcome, CallParts, CallStart } from "./call-start.ts";
import { toClientHeaders } from "./response-headers.ts";

/** Not a registered status: nginx logs it when the client disconnects before the response. */
const CLIENT_CLOSED = 499;

export class Call implements AttemptOwner, Placed {
  place = -1;
  readonly #parts: CallParts;
  readonly #start: CallStart;
  readonly #onEnded: (outcome: CallOutcome) => void;
  readonly #kept: KeptBody;
  #state: "attempting" | "waiting" | "relaying" | "ended" = "attempting";
  #steps: readonly Step[];
  #stepIndex = 0;
  /** Of the present step; 0 before it is admitted. */
  #attempts = 0;
  #current: Attempt | null = null;
  /** The second attempt of a hedged call. */
  #hedge: Attempt | null = null;
  #timer: NodeJS.Timeout | undefined;
  #otherAttempts: AttemptReport[] | null = null;
  #head: ResponseHead | null = null;
  #tap: UsageTap | null = null;
  #firstByteMs: number | null = null;
  #responseBytes = 0;
  #lastChunk: Buffer | null = null;
  #waitsForDrain = false;

  /** Keeps at least `cacheBytes` of the response for the cache; `onEnded` is called once. */
  constructor(parts: CallParts, start: CallStart, cacheBytes: number, onEnded: (o: CallOutcome) => void) {
    this.#parts = parts;
    this.#start = start;
    this.#steps = start.steps;
    this.#onEnded = onEnded;
    const keptBytes = Math.max(cacheBytes, start.logDetail === "bodies" ? parts.payloadBytes : 0);
    this.#kept = new KeptBody(keptBytes, parts.budget);
    start.response.once("close", () => this.#onClientClose());
  }

  get response(): HttpResponse {
    return this.#start.response;
  }

  run(): void {
    if (this.#start.response.destroyed) {
      this.#onClientClose();
      return;
    }
    this.#try();
  }

  /** Ends the call with an error of the gateway; when the response has begun, closes the connection instead. */
  refuse(error: SignalboxError): void {
    if (this.#state === "ended") return;
    const isRelaying = this.#state === "relaying";
    this.#abortAttempts();
    this.#end(isRelaying ? (this.#head?.status ?? error.status) : error.status, false);
    if (isRelaying) this.#start.response.destroy();
    else sendCallError(this.#start, this.#step.place ?? this.#stepIndex, error);
  }

  /** Ends the call because the service stops: closes the client's connection. */
  cancel(): void {
    if (this.#state === "ended") return;
    this.#onClientClose();
    this.#start.response.destroy();
  }

  get #step(): Step {
    const step = this.#steps[this.#stepIndex];
    if (step === undefined) throw new Error("a call has at least one step");
    return step;
  }

  get #hasOtherStep(): boolean {
    return this.#stepIndex + 1 < this.#steps.length || this.#start.moreSteps?.mayHaveNext === true;
  }

  /** Sends the next attempt of the present step, or of the first step behind it that may be sent. */
  #try(): void {
    this.#state = "attempting";
    for (;;) {
      const attempt = this.#prepare();
      if (attempt instanceof Attempt) {
        this.#current = attempt;
        attempt.send(this.#parts.client);
        const { hedgeAfterMs } = attempt.step.policy;
        if (hedgeAfterMs !== null && mayHedge(attempt.step.requestType)) this.#hedgeLater(hedgeAfterMs);
        return;
      }
      if (this.#takeNextStep()) continue;
      this.refuse(attempt);
      return;
    }
  }

  /** The attempt to send, or why the step may not be sent. */
  #prepare(): Attempt | SignalboxError {
    const step = this.#step;
    const key = step.keys?.pick(step.upstream) ?? null;
    if (key !== null && key instanceof SignalboxError) return key;
    if (this.#attempts === 0) {
      if (this.#isOpen(step, key) && this.#hasOtherStep && this.#takeNextStep()) return this.#prepare();
      const refusal = this.#start.admission?.admit(step, this.#stepIndex) ?? null;
      if (refusal !== null) return refusal;
    }
    this.#attempts += 1;
    return new Attempt(this, step, this.#stepIndex, key);
  }

  #isOpen(step: Step, key: PickedKey | null): boolean {
    const { circuits } = this.#parts;
    return !circuits.isEmpty && !circuits.admits(targetOf(this.#start.gateway, step, key));
  }

  #takeNextStep(): boolean {
    if (this.#stepIndex + 1 >= this.#steps.length) {
      const step = this.#start.moreSteps?.next() ?? null;
      if (step === null) return false;
      this.#steps = [...this.#steps, step];
    }
    this.#stepIndex += 1;
    this.#attempts = 0;
    return true;
  }

  #hedgeLater(ms: number): void {
    this.#timer = setTimeout(() => {
      if (this.#state !== "attempting" || this.#hedge !== null || !this.#canResend) return;
      if (this.#hasOtherStep) this.#takeNextStep();
      const attempt = this.#prepare();
      if (!(attempt instanceof Attempt)) return;
      this.#parts.metrics.retried(attempt.step.provider.slug);
      this.#hedge = attempt;
      attempt.send(this.#parts.client);
    }, ms);
  }

  get #canResend(): boolean {
    return this.#step.upstream.body.kind !== "streamed";
  }

  onHead({ step }: Attempt, head: ResponseHead): AnswerHold | AttemptFailure | null {
    const hasOtherStep = this.#hasOtherStep;
    if (head.status >= 400) {
      const failure = statusFailure(head, this.#parts.clock.now());
      return hasOtherStep && this.#canResend && mayHaveReason(head.status) ? new ErrorHold(failure) : failure;
    }
    const { maxAttempts, firstTokenTimeoutMs, holdsResponse } = step.policy;
    const isFinal = !hasOtherStep && this.#attempts >= maxAttempts && this.#hedge === null;
    if ((isFinal || !this.#canResend) && firstTokenTimeoutMs === null && !holdsResponse) return null;
    return holdFor(head, step, this.#parts.budget);
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
      attempt: this.#attempts,
      canResend: this.#canResend,
      hasOtherKey: attempt.step.keys?.hasOther(failure.status) ?? false,
      hasOtherStep: this.#hasOtherStep,
      isCircuitOpen,
      random: Math.random(),
    });
    if (move.kind !== "end" && (move.kind === "retry" || this.#takeNextStep())) {
      this.#addReport(attempt, "failed", failure);
      this.#abortAttempts();
      this.#parts.metrics.retried(attempt.step.provider.slug);
      this.#state = "waiting";
      this.#timer = setTimeout(() => this.#try(), move.kind === "retry" ? move.delayMs : 0);
      return true;
    }
    if (failure.kind === "status" || failure.kind === "in_band") return false;
    this.refuse(toCallError(failure));
    return true;
  }

  /** Returns whether the circuit of the target is open now. */
  #reportFailure({ step, key }: Attempt, failure: AttemptFailure): boolean {
    if (key !== null) step.keys?.report(key, failure);
    return this.#parts.circuits.report(targetOf(this.#start.gateway, step, key), failure);
  }

  #addReport(attempt: Attempt, outcome: AttemptReport["outcome"], failure: AttemptFailure | null): void {
    (this.#otherAttempts ??= []).push(attempt.toReport(outcome, failure));
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
    this.#stepIndex = attempt.stepIndex;
    this.#firstByteMs = performance.now() - this.#start.startedAt;
    const { step, key } = attempt;
    if (head.status < 400) {
      if (key !== null) step.keys?.report(key, { status: head.status, retryAfterMs: null });
      if (!this.#parts.circuits.isEmpty)
        this.#parts.circuits.succeeded(targetOf(this.#start.gateway, step, key));
      if (this.#steps.length > 1) this.#parts.latencies.add(this.#start.gateway, step, attempt.startedAt);
      if (step.requestType !== "models") {
        this.#tap = attempt.converted?.tap ?? createUsageTap(head.contentType, step.model === "");
      }
    }
    this.#head = head;
    return this.#writeHead(head);
  }

  #dropLoser(winner: Attempt): void {
    const loser = winner === this.#current ? this.#hedge : this.#current;
    this.#current = winner;
    this.#hedge = null;
    if (loser === null) return;
    this.#addReport(loser, "cancelled", null);
    loser.abort();
  }

  #writeHead(head: ResponseHead): boolean {
    const { id, logDetail, response, routeHeaders, cacheStatus, showsStep } = this.#start;
    const headers = toClientHeaders(head, {
      cacheStatus,
      logId: logDetail === "none" ? null : id,
      step: showsStep ? (this.#step.place ?? this.#stepIndex) : null,
      errorOrigin: head.status >= 400 ? "provider" : null,
      door: this.#step.door,
    });
    if (routeHeaders !== undefined) headers.push(...routeHeaders);
    try {
      response.writeHead(head.status, headers);
      return true;
    } catch (cause) {
      // Node refuses header names and values that HTTP does not allow; they could change the structure of the response.
      this.#state = "attempting";
      this.refuse(
        new SignalboxError("gateway_provider_unreachable", {
          message: "Provider sent invalid headers",
          cause,
        }),
      );
      return false;
    }
  }

  onBody(chunk: Buffer, isLast: boolean): void {
    if (this.#state !== "relaying") return;
    const { response } = this.#start;
    if (chunk.length > 0) {
      this.#tap?.push(chunk);
      this.#responseBytes += chunk.length;
      this.#lastChunk = chunk;
      this.#kept.add(chunk, isLast);
    }
    if (isLast) {
      this.#end(this.#head?.status ?? 0, true);
      if (chunk.length > 0) response.end(chunk);
      else response.end();
    } else if (!response.write(chunk) && !this.#waitsForDrain) {
      this.#waitsForDrain = true;
      this.#current?.pause();
      response.once("drain", () => {
        this.#waitsForDrain = false;
        this.#current?.resume();
      });
    }
  }

  onHeadAlone(): void {
    // A client that waits for a stream to open must not wait for its first event.
    if (this.#state === "relaying") this.#start.response.flushHeaders();
  }

  onCut(attempt: Attempt, failure: AttemptFailure): void {
    if (this.#state !== "relaying") return;
    this.#reportFailure(attempt, failure);
    this.#end(this.#head?.status ?? 0, false);
    sendCut(this.#start.response, {
      head: this.#head,
      dialect: attempt.step.door?.clientDialect ?? attempt.step.requestType,
      lastChunk: this.#lastChunk,
      converted: attempt.converted,
      isTimeout: failure.kind === "timeout",
    });
  }

  #onClientClose(): void {
    if (this.#state === "ended") return;
    this.#abortAttempts();
    const status = this.#state === "relaying" ? (this.#head?.status ?? CLIENT_CLOSED) : CLIENT_CLOSED;
    this.#end(status, false, true);
  }

  #end(status: number, isComplete: boolean, isAbandoned = false): void {
    this.#state = "ended";
    clearTimeout(this.#timer);
    const start = this.#start;
    const parts = this.#parts;
    const step = this.#step;
    const tapped = this.#tap?.end();
    const usage = tapped?.usage ?? NO_USAGE;
    const model = step.model === "" ? (tapped?.model ?? "") : step.model;
    // A provider bills neither calls that it did not answer nor its own refusals.
    const isBilled = this.#head !== null && this.#head.status < 400;
    const cost = isBilled
      ? parts.prices.costOf(step.provider.slug, model, usage, start.options.customCost)
      : 0;
    const body = this.#kept.take();
    parts.metrics.ended(step.provider.slug, status, this.#firstByteMs, usage, cost, false);
    recordCall(parts, start, {
      step,
      stepIndex: step.place ?? this.#stepIndex,
      model,
      status,
      isComplete,
      isCached: false,
      head: this.#head,
      firstByteMs: this.#firstByteMs,
      usage,
      cost,
      responseBytes: this.#responseBytes,
      body,
    });
    this.#onEnded({
      status,
      isComplete,
      isAbandoned,
      head: this.#head,
      usage,
      cost,
      body: this.#kept.isWhole && isComplete ? body : null,
      step,
      otherAttempts: this.#otherAttempts,
    });
  }
}
