/**
 * Reads a request's body for forwarding: whole up to `replayBytes`, beyond that only its beginning, the rest to be streamed.
 * A body over `maxBytes` is refused, from its declared length alone if it has one.
 */
import type { IncomingMessage } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import type { RequestContext } from "../../http/request-context.ts";
import { NO_BODY, type RequestBody } from "../upstream/request-body.ts";

export interface BodyLimits {
  /** Bodies up to this size are kept in memory, so that they can be retried, cached and looked into. */
  readonly replayBytes: number;
  readonly maxBytes: number;
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
  const isCollected =
    isSmall &&
    context.collectBody({
      onBody: (bytes) => handler.onBody(toBody(bytes)),
      onBroken: () => handler.onFailure(brokenOff()),
    });
  if (!isCollected) readStream(request, length, limits, handler);
}

function readStream(
  request: IncomingMessage,
  length: number | null,
  limits: BodyLimits,
  handler: BodyHandler,
): void {
  let chunks: Buffer[] = [];
  let received = 0;
  let isStreaming = false;
  request.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (received > limits.maxBytes) {
      request.pause();
      const error = tooLarge(limits.maxBytes);
      if (isStreaming) handler.onTooLarge(error);
      else handler.onFailure(error);
    } else if (!isStreaming) {
      chunks.push(chunk);
      if (received <= limits.replayBytes) return;
      isStreaming = true;
      request.pause();
      handler.onBody({ kind: "streamed", start: Buffer.concat(chunks), rest: request, length });
      chunks = [];
    }
  });
  request.once("end", () => {
    if (!isStreaming) handler.onBody(toBody(Buffer.concat(chunks)));
  });
  request.once("error", () => {
    if (!isStreaming) handler.onFailure(brokenOff());
  });
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
