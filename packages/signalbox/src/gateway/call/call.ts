/**
 * One call from its acceptance to its last byte: tries the steps in order, each as often as its policy allows, relays the response of the
 * one that succeeds, and records one row in the call log.
 *
 * States:  attempting → relaying → ended
 *            │  ▲          │
 *            ▼  │          └─ the upstream fails: the client's connection is closed
 *          waiting (retry delay)
 *   From any state except `ended`, a disconnect of the client ends the call and aborts the upstream exchange.
 *
 * Invariants:
 * 1. No attempt follows once the head of a response went to the client: `relaying` leads to `ended` only.
 * 2. The row is recorded before the last byte of the response is written, so a client that has read the end can read the row.
 * 3. When the client's socket is full, reading upstream pauses: a slow client does not fill the memory.
 * 4. `ended` is reached once; afterwards the call has no timer and no upstream exchange.
 */
import type { HttpResponse } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Placed } from "../../core/place-list.ts";
import { renderError, sendError } from "../../http/render-error.ts";
import {
  createUsageTap,
  KeptBody,
  NO_USAGE,
  type ResponseHead,
  type UpstreamExchange,
  type UpstreamFailure,
  type UpstreamHandler,
  type Usage,
  type UsageTap,
} from "../../engines/relay/index.ts";
import type { ConvertedExchange } from "../plan/door-step.ts";
import type { AttemptPolicy, Step } from "../plan/plan-step.ts";
import { recordCall } from "./call-record.ts";
import type { CallParts, CallStart } from "./call-start.ts";
import { toClientHeaders } from "./response-headers.ts";

export interface CallOutcome {
  readonly status: number;
  readonly isComplete: boolean;
  /** The client disconnected before the end. */
  readonly isAbandoned: boolean;
  readonly head: ResponseHead | null;
  readonly usage: Usage;
  readonly cost: number | null;
  /** The response body; null when it was not kept whole. */
  readonly body: Buffer | null;
}

/** Not a registered status: nginx logs it when the client disconnects before the response. */
const CLIENT_CLOSED = 499;

export class Call implements UpstreamHandler, Placed {
  place = -1;
  readonly #parts: CallParts;
  readonly #start: CallStart;
  readonly #onEnded: (outcome: CallOutcome) => void;
  readonly #kept: KeptBody;
  #state: "attempting" | "waiting" | "relaying" | "ended" = "attempting";
  #stepIndex = 0;
  #attempt = 1;
  #exchange: UpstreamExchange | null = null;
  #timer: NodeJS.Timeout | undefined;
  #head: ResponseHead | null = null;
  #tap: UsageTap | null = null;
  /** Present when the response is translated; its tap reads the provider's bytes. */
  #converted: ConvertedExchange | null = null;
  #firstByteMs: number | null = null;
  #responseBytes = 0;
  #waitsForDrain = false;

  /** Keeps at least `cacheBytes` of the response for the cache; `onEnded` is called once. */
  constructor(
    parts: CallParts,
    start: CallStart,
    cacheBytes: number,
    onEnded: (outcome: CallOutcome) => void,
  ) {
    this.#parts = parts;
    this.#start = start;
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
    this.#exchange?.abort();
    this.#end(isRelaying ? (this.#head?.status ?? error.status) : error.status, false);
    if (isRelaying) this.#start.response.destroy();
    else this.#sendError(error);
  }

  /** Ends the call because the service stops: closes the client's connection. */
  cancel(): void {
    if (this.#state === "ended") return;
    this.#onClientClose();
    this.#start.response.destroy();
  }

  /** Sent to the client; null for a call without a row. */
  get #logId(): string | null {
    return this.#start.logDetail === "none" ? null : this.#start.id;
  }

  get #step(): Step {
    const step = this.#start.steps[this.#stepIndex];
    if (step === undefined) throw new Error("a call has at least one step");
    return step;
  }

  #try(): void {
    const { provider, upstream, policy, door } = this.#step;
    this.#state = "attempting";
    if (policy.requestTimeoutMs !== null) {
      this.#timer = setTimeout(() => this.#onTimeout(), policy.requestTimeoutMs);
    }
    const answer = provider.answer ?? ((request, handler) => this.#parts.client.send(request, handler));
    this.#converted = door?.convert?.((handler) => answer(upstream, handler), this) ?? null;
    this.#exchange = this.#converted ?? answer(upstream, this);
  }

  onHead(head: ResponseHead): void {
    clearTimeout(this.#timer);
    if (head.status >= 400 && this.#tryAgain(isRetryableStatus(head.status))) return;
    this.#state = "relaying";
    this.#head = head;
    this.#firstByteMs = performance.now() - this.#start.startedAt;
    const { requestType, model, door } = this.#step;
    const hasUsage = head.status < 400 && requestType !== "models";
    this.#tap = hasUsage ? (this.#converted?.tap ?? createUsageTap(head.contentType, model === "")) : null;
    try {
      this.#start.response.writeHead(
        head.status,
        toClientHeaders(head, {
          cacheStatus: this.#start.cacheStatus,
          logId: this.#logId,
          step: this.#start.showsStep ? this.#stepIndex : null,
          errorOrigin: head.status >= 400 ? "provider" : null,
          door,
        }),
      );
    } catch (cause) {
      // Node refuses header names and values that HTTP does not allow; they could change the structure of the response.
      this.#state = "attempting";
      this.#exchange?.abort();
      this.refuse(
        new SignalboxError("gateway_provider_unreachable", {
          message: "Provider sent invalid headers",
          cause,
        }),
      );
    }
  }

  onBody(chunk: Buffer, isLast: boolean): void {
    if (this.#state !== "relaying") return;
    const { response } = this.#start;
    if (chunk.length > 0) {
      this.#responseBytes += chunk.length;
      this.#tap?.push(chunk);
      this.#kept.add(chunk, isLast);
    }
    if (isLast) {
      this.#end(this.#head?.status ?? 0, true);
      if (chunk.length > 0) response.end(chunk);
      else response.end();
    } else if (!response.write(chunk) && !this.#waitsForDrain) {
      this.#waitsForDrain = true;
      this.#exchange?.pause();
      response.once("drain", () => {
        this.#waitsForDrain = false;
        this.#exchange?.resume();
      });
    }
  }

  onReadEnd(): void {
    // Only the head arrived: a client that waits for a stream to open must not wait for its first event.
    if (this.#state === "relaying" && this.#responseBytes === 0) this.#start.response.flushHeaders();
  }

  onFailure(failure: UpstreamFailure): void {
    clearTimeout(this.#timer);
    if (this.#state === "relaying") {
      this.#end(this.#head?.status ?? 0, false);
      this.#start.response.destroy();
      return;
    }
    if (this.#tryAgain(true)) return;
    this.refuse(
      failure.kind === "timeout"
        ? new SignalboxError("gateway_provider_timeout", { cause: failure })
        : new SignalboxError("gateway_provider_unreachable", {
            message:
              failure.kind === "broken" ? "Provider broke off before answering" : "Provider unreachable",
            cause: failure,
          }),
    );
  }

  #onTimeout(): void {
    if (this.#state !== "attempting") return;
    this.#exchange?.abort();
    if (!this.#tryAgain(true)) this.refuse(new SignalboxError("gateway_provider_timeout"));
  }

  /** Aborts the exchange and schedules the next attempt or step; false when there is none. */
  #tryAgain(isRetryable: boolean): boolean {
    const { policy, provider, upstream } = this.#step;
    const canResend = upstream.body.kind !== "streamed";
    if (isRetryable && canResend && this.#attempt < policy.maxAttempts) {
      this.#attempt += 1;
    } else if (canResend && this.#stepIndex + 1 < this.#start.steps.length) {
      this.#stepIndex += 1;
      this.#attempt = 1;
    } else {
      return false;
    }
    this.#exchange?.abort();
    this.#parts.metrics.retried(provider.slug);
    this.#state = "waiting";
    const delayMs = this.#attempt === 1 ? 0 : delayBefore(this.#attempt, policy);
    this.#timer = setTimeout(() => this.#try(), delayMs);
    return true;
  }

  #onClientClose(): void {
    if (this.#state === "ended") return;
    this.#exchange?.abort();
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
      stepIndex: this.#stepIndex,
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
    });
  }

  #sendError(error: SignalboxError): void {
    const { response, requestId, showsStep, errorDialect } = this.#start;
    if (response.destroyed) return;
    const rendered = renderError(error, errorDialect, requestId);
    sendError(response, {
      ...rendered,
      headers: {
        ...rendered.headers,
        ...(this.#logId === null ? {} : { "gw-aig-log-id": this.#logId }),
        ...(showsStep ? { "gw-aig-step": String(this.#stepIndex) } : {}),
      },
    });
  }
}

/** The delay before attempt `next`; 2 is the first retry. */
function delayBefore(next: number, policy: AttemptPolicy): number {
  const retries = next - 1;
  switch (policy.backoff) {
    case "constant":
      return policy.retryDelayMs;
    case "linear":
      return policy.retryDelayMs * retries;
    case "exponential":
      return policy.retryDelayMs * 2 ** (retries - 1);
  }
}

/** True for statuses that another attempt may change: the provider was busy, timed out or failed. */
function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}
