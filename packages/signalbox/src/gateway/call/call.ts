/**
 * One call from the moment it is accepted to its last byte: tries the steps in order, each as often as its policy says, relays the
 * response that wins, and leaves one row in the call log.
 *
 * States:  attempting → relaying → ended
 *            │  ▲          │
 *            ▼  │          └─ the upstream breaks off: the client's connection is cut
 *          waiting (retry delay)
 *   From any state but `ended`, the client going away ends the call and cancels what runs upstream.
 *
 * Invariants:
 * 1. Nothing is retried once a byte of the response's head went to the client: `relaying` is never left for another attempt.
 * 2. The row is recorded before the response's last byte is handed to the socket, so whoever has seen the end can read the row.
 * 3. At most what the client's socket takes is in memory: when it is full, reading upstream stops.
 * 4. `ended` is reached once; afterwards no timer and no upstream exchange of the call is alive.
 */
import type { HttpRequest, HttpResponse } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Placed } from "../../core/place-list.ts";
import { renderError, sendError } from "../../http/render-error.ts";
import { type CallUsage, NO_USAGE } from "../../engines/call-log/index.ts";
import type { Gateway } from "../settings/gateway.ts";
import {
  contentTypeOf,
  KeptBody,
  type ResponseHead,
  type UpstreamExchange,
  type UpstreamFailure,
  type UpstreamHandler,
  type UsageTap,
} from "../../engines/relay/index.ts";
import type { CallOptions } from "./call-options.ts";
import type { CallParts } from "./call-parts.ts";
import { type CallResult, isLogged, keepsPayload, toCallRecord } from "./call-record.ts";
import { usageDialectOf } from "./request-type.ts";
import { toClientHeaders } from "./response-headers.ts";
import { delayBefore, isRetryableStatus, type Step } from "./step.ts";

/** What is known of a call when it is accepted. */
export interface CallStart {
  readonly id: string;
  readonly gateway: Gateway;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly requestId: string;
  readonly options: CallOptions;
  readonly steps: readonly Step[];
  /** Whether the answer says which step it came from. */
  readonly showsStep: boolean;
  readonly tokenId: string | null;
  readonly createdAt: number;
  /** `performance.now()` when the headers had arrived. */
  readonly startedAt: number;
  readonly cacheStatus: "MISS" | null;
}

export interface CallOutcome {
  readonly status: number;
  readonly isComplete: boolean;
  /** The client went away before the end. */
  readonly isAbandoned: boolean;
  readonly head: ResponseHead | null;
  readonly usage: CallUsage;
  readonly cost: number | null;
  /** The whole response body, when it was kept whole. */
  readonly body: Buffer | null;
}

/** Not a registered status: the client closed the connection before it had an answer (nginx's number). */
const CLIENT_CLOSED = 499;

export class Call implements UpstreamHandler, Placed {
  place = -1;
  readonly #parts: CallParts;
  readonly #start: CallStart;
  readonly #onEnded: (outcome: CallOutcome) => void;
  readonly #isLogged: boolean;
  readonly #kept: KeptBody;
  #state: "attempting" | "waiting" | "relaying" | "ended" = "attempting";
  #stepIndex = 0;
  #attempt = 1;
  #exchange: UpstreamExchange | null = null;
  #timer: NodeJS.Timeout | undefined;
  #head: ResponseHead | null = null;
  #tap: UsageTap | null = null;
  #firstByteMs: number | null = null;
  #responseBytes = 0;
  #waitsForDrain = false;

  /** `cacheBytes`: how much of the response is kept beyond what the log wants; `onEnded` is told how it went, once. */
  constructor(
    parts: CallParts,
    start: CallStart,
    cacheBytes: number,
    onEnded: (outcome: CallOutcome) => void,
  ) {
    this.#parts = parts;
    this.#start = start;
    this.#onEnded = onEnded;
    this.#isLogged = isLogged(start);
    const keptBytes = Math.max(cacheBytes, keepsPayload(start) ? parts.payloadBytes : 0);
    this.#kept = new KeptBody(keptBytes, parts.budget);
    start.response.once("close", () => this.#onClientClose());
  }

  run(): void {
    if (this.#start.response.destroyed) {
      this.#onClientClose();
      return;
    }
    this.#try();
  }

  /** Ends the call with an error of the gateway, unless an answer has begun; then the connection is cut. */
  refuse(error: SignalboxError): void {
    if (this.#state === "ended") return;
    const isRelaying = this.#state === "relaying";
    this.#exchange?.abort();
    this.#end(isRelaying ? (this.#head?.status ?? error.status) : error.status, false);
    if (isRelaying) this.#start.response.destroy();
    else this.#sendError(error);
  }

  /** Ends the call because the service stops: the client's connection is cut, the row says how far it came. */
  cancel(): void {
    if (this.#state === "ended") return;
    this.#onClientClose();
    this.#start.response.destroy();
  }

  get #step(): Step {
    const step = this.#start.steps[this.#stepIndex];
    if (step === undefined) throw new Error("a call has at least one step");
    return step;
  }

  #try(): void {
    const { provider, upstream, policy } = this.#step;
    this.#state = "attempting";
    if (policy.requestTimeoutMs !== null) {
      this.#timer = setTimeout(() => this.#onTimeout(), policy.requestTimeoutMs);
    }
    this.#exchange =
      provider.answer === undefined
        ? this.#parts.client.send(upstream, this)
        : provider.answer(upstream, this);
  }

  onHead(head: ResponseHead): void {
    clearTimeout(this.#timer);
    if (head.status >= 400 && this.#tryAgain(isRetryableStatus(head.status))) return;
    this.#state = "relaying";
    this.#head = head;
    this.#firstByteMs = performance.now() - this.#start.startedAt;
    const { requestType, provider, model } = this.#step;
    this.#tap =
      head.status < 400
        ? this.#parts.createTap(
            usageDialectOf(requestType, provider.usage),
            contentTypeOf(head),
            model === "",
          )
        : null;
    try {
      this.#start.response.writeHead(
        head.status,
        toClientHeaders(head, {
          cacheStatus: this.#start.cacheStatus,
          logId: this.#isLogged ? this.#start.id : null,
          step: this.#start.showsStep ? this.#stepIndex : null,
          errorOrigin: head.status >= 400 ? "provider" : null,
        }),
      );
    } catch (cause) {
      // Header names or values that HTTP does not allow: passing them on would let the provider write the response's structure.
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
    // The head alone arrived: a client that waits for a stream to open should not wait for its first event.
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

  /** Goes on to the next attempt or step, if there is one left; what runs upstream is given up. */
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
    const cost = this.#costOf(model, usage);
    const body = this.#kept.take();
    parts.metrics.ended(step.provider.slug, status, this.#firstByteMs, usage, cost, false);
    if (this.#isLogged) {
      const result: CallResult = {
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
      };
      parts.sink.record(toCallRecord(start, result, parts.payloadBytes));
    }
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

  #costOf(model: string, usage: CallUsage): number | null {
    // What no provider answered, no provider bills; neither does it bill its own refusals.
    if (this.#head === null || this.#head.status >= 400) return 0;
    const custom = this.#start.options.customCost;
    if (custom === undefined) return this.#parts.costOf(this.#step.provider.slug, model, usage);
    if ("total" in custom) return custom.total;
    return custom.perTokenIn * usage.tokensIn + custom.perTokenOut * usage.tokensOut;
  }

  #sendError(error: SignalboxError): void {
    const { response, requestId, showsStep } = this.#start;
    if (response.destroyed) return;
    const rendered = renderError(error, "gateway", requestId);
    sendError(response, {
      ...rendered,
      headers: {
        ...rendered.headers,
        ...(this.#isLogged ? { "gw-aig-log-id": this.#start.id } : {}),
        ...(showsStep ? { "gw-aig-step": String(this.#stepIndex) } : {}),
      },
    });
  }
}
