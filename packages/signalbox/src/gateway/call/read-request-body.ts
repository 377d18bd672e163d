/**
 * Reads a request's body for forwarding: whole up to `replayBytes`, beyond that only its beginning, the rest to be streamed.
 * A body over `maxBytes` is refused, from its declared length alone if it has one. What is in memory counts against a budget that all
 * calls share, from its first byte until the call's answer has left.
 */
import type { IncomingMessage } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import type { BodyReceiver, RequestContext } from "../../http/request-context.ts";
import { NO_BODY, type RequestBody } from "../../engines/relay/index.ts";
import { type BodyBudget, noRoom, PIECE_OVERHEAD_BYTES, type Upload } from "./body-budget.ts";

export interface BodyLimits {
  /** Bodies up to this size are kept in memory, so that they can be retried, cached and looked into. */
  readonly replayBytes: number;
  readonly maxBytes: number;
  readonly budget: BodyBudget;
}

export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return length === undefined ? headers["transfer-encoding"] !== undefined : length !== "0";
}

/** Told once how reading went; `onTooLarge` may come after `onBody`, for a streamed body without declared length. */
export interface BodyHandler {
  onBody(body: RequestBody): void;
  onFailure(error: SignalboxError): void;
  onTooLarge(error: SignalboxError): void;
}

export function readRequestBody(
  request: IncomingMessage,
  context: RequestContext,
  limits: BodyLimits,
  handler: BodyHandler,
): void {
  const declared = request.headers["content-length"];
  const length = declared === undefined ? null : Number(declared);
  if (length === null && request.headers["transfer-encoding"]?.toLowerCase() !== "chunked") {
    // Node takes the chunks apart and leaves any other coding as it is: what we would forward would not be what the caller meant.
    handler.onFailure(unsupportedCoding());
    return;
  }
  if (length !== null && length > limits.maxBytes) {
    handler.onFailure(tooLarge(limits.maxBytes));
    return;
  }
  // A client that waits for its go-ahead gets it when the stream begins to flow.
  const isSmall = length !== null && length <= limits.replayBytes && request.headers.expect === undefined;
  const isCollected = isSmall && context.collectBody(new CollectedBody(context, length, limits, handler));
  if (!isCollected) new StreamedBody(request, context, length, limits, handler).read();
}

/** Counts a body that is arriving, and gives it up when there is no room for it or it does not progress. */
abstract class ArrivingBody {
  protected readonly context: RequestContext;
  protected readonly handler: BodyHandler;
  protected received = 0;
  protected readonly length: number | null;
  readonly #budget: BodyBudget;
  #upload: Upload | null = null;

  constructor(context: RequestContext, length: number | null, limits: BodyLimits, handler: BodyHandler) {
    this.context = context;
    this.length = length;
    this.#budget = limits.budget;
    this.handler = handler;
  }

  /** Stops reading and lets go of what was read. */
  protected abstract drop(): void;

  /** A piece that is kept has arrived; false when the body was given up over it. */
  protected count(bytes: number): boolean {
    this.received += bytes;
    // Most bodies come in one piece, and are never watched.
    if (this.length === null || this.received < this.length) {
      this.#upload ??= this.#budget.watch((reason) => this.giveUp(reason));
    }
    this.#upload?.progress(bytes);
    if (this.context.memory.hold(this.#budget, bytes + PIECE_OVERHEAD_BYTES)) return true;
    this.giveUp(noRoom());
    return false;
  }

  /** Nothing more of the body is kept. */
  protected settle(): void {
    if (this.#upload === null) return;
    this.#budget.settle(this.#upload);
    this.#upload = null;
  }

  protected giveUp(reason: SignalboxError): void {
    this.settle();
    this.drop();
    this.context.memory.release();
    this.handler.onFailure(reason);
  }
}

class CollectedBody extends ArrivingBody implements BodyReceiver {
  onPiece(length: number): void {
    this.count(length);
  }

  onBody(bytes: Buffer): void {
    this.settle();
    this.handler.onBody(toBody(bytes));
  }

  onBroken(): void {
    this.settle();
    this.handler.onFailure(brokenOff());
  }

  protected drop(): void {
    this.context.stopCollecting();
  }
}

class StreamedBody extends ArrivingBody {
  readonly #request: IncomingMessage;
  readonly #limits: BodyLimits;
  #chunks: Buffer[] = [];
  #state: "keeping" | "streaming" | "over" = "keeping";

  constructor(
    request: IncomingMessage,
    context: RequestContext,
    length: number | null,
    limits: BodyLimits,
    handler: BodyHandler,
  ) {
    super(context, length, limits, handler);
    this.#request = request;
    this.#limits = limits;
  }

  read(): void {
    const request = this.#request;
    request.on("data", (chunk: Buffer) => this.#onData(chunk));
    request.once("end", () => {
      if (this.#state !== "keeping") return;
      this.#state = "over";
      this.settle();
      this.handler.onBody(toBody(Buffer.concat(this.#chunks)));
    });
    request.once("error", () => {
      if (this.#state !== "keeping") return;
      this.#state = "over";
      this.settle();
      this.handler.onFailure(brokenOff());
    });
  }

  protected drop(): void {
    this.#state = "over";
    this.#chunks = [];
    this.#request.pause();
  }

  #onData(chunk: Buffer): void {
    const { maxBytes, replayBytes } = this.#limits;
    if (this.#state === "over") return;
    if (this.received + chunk.length > maxBytes) {
      const wasStreaming = this.#state === "streaming";
      if (wasStreaming) {
        this.#request.pause();
        this.#state = "over";
        this.handler.onTooLarge(tooLarge(maxBytes));
      } else {
        this.giveUp(tooLarge(maxBytes));
      }
    } else if (this.#state === "streaming") {
      this.received += chunk.length;
    } else if (this.count(chunk.length)) {
      this.#chunks.push(chunk);
      if (this.received <= replayBytes) return;
      this.#state = "streaming";
      this.settle();
      this.#request.pause();
      const start = Buffer.concat(this.#chunks);
      this.#chunks = [];
      this.handler.onBody({ kind: "streamed", start, rest: this.#request, length: this.length });
    }
  }
}

function toBody(bytes: Buffer): RequestBody {
  return bytes.length === 0 ? NO_BODY : { kind: "whole", bytes };
}

function brokenOff(): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message: "The request body broke off" });
}

function unsupportedCoding(): SignalboxError {
  return new SignalboxError("gateway_malformed_request", {
    message: "Transfer-Encoding must be chunked; compress a body with Content-Encoding",
  });
}

function tooLarge(maxBytes: number): SignalboxError {
  return new SignalboxError("gateway_body_too_large", {
    message: `Request body too large (maximum ${maxBytes} bytes)`,
  });
}
