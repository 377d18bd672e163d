/**
 * One request to one target, and its response until the response is an answer or a failure.
 *
 * States:  sent → held → relaying → ended
 *            └──────────────▲
 *   sent: no head has arrived.  held: the head is here, and its beginning is examined (reliability/answer-hold.ts).
 *   relaying: the owner has accepted the response, and gets every byte.  ended: no event follows.
 *
 * The timer belongs to the state: in `sent` the request timeout or the limit for the first token, whichever is shorter; in `held` the rest
 * of the limit for the first token, else the stall limit; in `relaying` the stall limit.
 *
 * Invariants:
 * 1. The owner gets one verdict of an attempt: `onFailed` (and may let the response pass all the same), or `onAnswer`.
 * 2. After `abort` the owner gets no event, and the attempt has no timer and no exchange.
 */
import {
  createUsageTap,
  type ResponseHead,
  type UpstreamClient,
  type UpstreamExchange,
  type UpstreamFailure,
  type UpstreamHandler,
  type Usage,
} from "../../engines/relay/index.ts";
import { BlockedResponse } from "../guardrails/blocked-response.ts";
import type { ConvertedExchange } from "../step/translation.ts";
import type { Step } from "../step/step.ts";
import type { PickedKey } from "../step/key-pool.ts";
import type { AnswerHold } from "../reliability/answer-hold.ts";
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { PreparedAttempt } from "./call-steps.ts";
import { type AttemptFailure, timeoutFailure, transportFailure } from "../reliability/attempt-failure.ts";

/** The call that an attempt belongs to. */
export interface AttemptOwner {
  /** The head has arrived: an object that examines the body, null for an answer as it is, or the failure that the status is. */
  onHead(attempt: Attempt, head: ResponseHead): AnswerHold | AttemptFailure | null;
  /** Returns whether the call goes on without this attempt. If not, its response passes; without a response the owner has ended the call. */
  onFailed(attempt: Attempt, failure: AttemptFailure): boolean;
  /** False when the head could not be written; the owner has ended the call. */
  onAnswer(attempt: Attempt, head: ResponseHead): boolean;
  onBody(chunk: Buffer, isLast: boolean): void;
  /** Only the head has arrived. */
  onHeadAlone(): void;
  /** The answer broke off. */
  onCut(attempt: Attempt, failure: AttemptFailure): void;
}

export class Attempt implements UpstreamHandler {
  readonly step: Step;
  readonly stepIndex: number;
  readonly key: PickedKey | null;
  readonly startedAt = performance.now();
  head: ResponseHead | null = null;
  /** Present when the response is translated on its way here. */
  converted: ConvertedExchange | null = null;
  readonly #owner: AttemptOwner;
  #state: "sent" | "held" | "relaying" | "ended" = "sent";
  #exchange: UpstreamExchange | null = null;
  #timer: NodeJS.Timeout | undefined;
  #hold: AnswerHold | null = null;
  #hasBody = false;

  constructor(owner: AttemptOwner, { step, index, key }: PreparedAttempt) {
    this.#owner = owner;
    this.step = step;
    this.stepIndex = index;
    this.key = key;
  }

  send(client: UpstreamClient): void {
    const { provider, upstream, policy, translation, guard } = this.step;
    const { requestTimeoutMs, firstTokenTimeoutMs } = policy;
    if (requestTimeoutMs !== null || firstTokenTimeoutMs !== null) {
      this.#arm(Math.min(requestTimeoutMs ?? Infinity, firstTokenTimeoutMs ?? Infinity));
    }
    const planned = this.key?.upstream ?? upstream;
    const request =
      policy.stallTimeoutMs === null ? planned : { ...planned, stallTimeoutMs: policy.stallTimeoutMs };
    if (guard !== undefined || (translation !== null && translation.convert !== null)) {
      const answer = provider.answer ?? ((sent, handler) => client.send(sent, handler));
      const plain = (handler: UpstreamHandler) => answer(request, handler);
      const send = guard === undefined ? plain : (handler: UpstreamHandler) => guard.exchange(plain, handler);
      this.converted = translation?.convert?.(send, this) ?? null;
      this.#exchange = this.converted ?? send(this);
    } else {
      this.#exchange = provider.answer?.(request, this) ?? client.send(request, this);
    }
  }

  onHead(head: ResponseHead): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.head = head;
    const verdict = this.#owner.onHead(this, head);
    if (verdict === null) {
      this.#relay(head);
    } else if ("push" in verdict) {
      this.#state = "held";
      this.#hold = verdict;
      this.#armHeld();
    } else if (!this.#owner.onFailed(this, verdict)) {
      this.#relay(head);
    }
  }

  onBody(chunk: Buffer, isLast: boolean): void {
    if (this.#state === "relaying") {
      this.#hasBody = true;
      if (isLast) this.#end();
      else this.#timer?.refresh();
      this.#owner.onBody(chunk, isLast);
    } else if (this.#hold !== null) {
      this.#examine(this.#hold, chunk, isLast);
    }
  }

  onReadEnd(): void {
    if (this.#state !== "relaying" || this.#hasBody) return;
    // Some dialects have an event for the beginning. A held answer must not begin: it may still come from another target.
    const first = this.converted?.begin() ?? null;
    if (first === null) this.#owner.onHeadAlone();
    else this.onBody(first, false);
  }

  onFailure(failure: UpstreamFailure): void {
    this.#fail(transportFailure(failure));
  }

  pause(): void {
    // A client that reads slowly is no stall of the provider.
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#exchange?.pause();
  }

  resume(): void {
    this.#exchange?.resume();
    if (this.#state === "relaying") this.#armStall();
  }

  /** Ends the attempt from outside; the owner gets no event. */
  abort(): void {
    this.#end();
    this.#leaveHold();
    this.#exchange?.abort();
  }

  /** Describes the attempt for accounting, before `abort`. */
  toReport(outcome: AttemptReport["outcome"], failure: AttemptFailure | null): AttemptReport {
    const chunks = this.#hold?.chunks ?? [];
    // A blocked response never came here, but the provider charges for it.
    const block = failure?.cause instanceof BlockedResponse ? failure.cause : null;
    const heldBytes = chunks.reduce((sum, { length }) => sum + length, 0);
    return {
      step: this.step,
      stepIndex: this.stepIndex,
      keyId: this.key?.id ?? null,
      outcome,
      failure,
      head: this.head ?? block?.head ?? null,
      usage: block?.tap.end().usage ?? (chunks.length === 0 ? null : readUsage(this.head, chunks)),
      responseBytes: heldBytes + (block?.withheldBytes ?? 0),
      durationMs: performance.now() - this.startedAt,
      startedAt: this.startedAt,
    };
  }

  #examine(hold: AnswerHold, chunk: Buffer, isLast: boolean): void {
    const verdict = hold.push(chunk, isLast);
    if (verdict === "wait") {
      if (hold.hasContent) this.#armStall();
      else if (this.step.policy.firstTokenTimeoutMs === null) this.#timer?.refresh();
      return;
    }
    if (verdict !== "release" && this.#owner.onFailed(this, verdict)) return;
    const { head } = this;
    if (head === null || !this.#relay(head)) return;
    this.#hasBody = true;
    if (isLast) this.#end();
    const { chunks } = hold;
    this.#leaveHold();
    this.#owner.onBody(chunks.length === 1 ? chunk : Buffer.concat(chunks), isLast);
  }

  #relay(head: ResponseHead): boolean {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#state = "relaying";
    if (!this.#owner.onAnswer(this, head)) return false;
    this.#armStall();
    return true;
  }

  #armHeld(): void {
    const { firstTokenTimeoutMs } = this.step.policy;
    if (firstTokenTimeoutMs === null) this.#armStall();
    else this.#arm(Math.max(1, this.startedAt + firstTokenTimeoutMs - performance.now()));
  }

  #armStall(): void {
    const { stallTimeoutMs } = this.step.policy;
    if (stallTimeoutMs !== null) this.#arm(stallTimeoutMs);
    else clearTimeout(this.#timer);
  }

  #arm(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#onTimeout(), ms);
  }

  #onTimeout(): void {
    if (this.#state === "ended") return;
    this.#exchange?.abort();
    this.#fail(
      timeoutFailure(
        this.#state === "sent" ? "the provider did not respond in time" : "the response stalled",
      ),
    );
  }

  #fail(failure: AttemptFailure): void {
    const wasRelaying = this.#state === "relaying";
    this.#end();
    if (wasRelaying) this.#owner.onCut(this, failure);
    // The owner reads from the hold what the failed attempt used.
    else this.#owner.onFailed(this, failure);
    this.#leaveHold();
  }

  #leaveHold(): void {
    this.#hold?.dispose();
    this.#hold = null;
  }

  #end(): void {
    this.#state = "ended";
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

function readUsage(head: ResponseHead | null, chunks: readonly Buffer[]): Usage | null {
  const tap = createUsageTap(head?.contentType ?? "");
  for (const chunk of chunks) tap.push(chunk);
  return tap.end().usage;
}
