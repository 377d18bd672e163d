/**
 * Reads a request's body for forwarding: whole up to `replayBytes`, beyond that only its beginning, the rest to be streamed.
 * A body over `maxBytes` is refused, from its declared length alone if it has one.
 */
import type { IncomingMessage } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import { NO_BODY, type RequestBody } from "../upstream/request-body.ts";

export interface BodyLimits {
  /** Bodies up to this size are kept in memory, so that they can be retried, cached and looked into. */
  readonly replayBytes: number;
  readonly maxBytes: number;
}

export function hasBody(request: IncomingMessage): boolean {
  const length = request.headers["content-length"];
  return length === undefined ? request.headers["transfer-encoding"] !== undefined : length !== "0";
}

/** `onTooLarge` is called when a streamed body without declared length exceeds the limit after this has resolved. */
export function readRequestBody(
  request: IncomingMessage,
  limits: BodyLimits,
  onTooLarge: (error: SignalboxError) => void,
): Promise<RequestBody> {
  const declared = request.headers["content-length"];
  const length = declared === undefined ? null : Number(declared);
  if (length !== null && length > limits.maxBytes) return Promise.reject(tooLarge(limits.maxBytes));
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let received = 0;
    let isStreaming = false;
    request.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (received > limits.maxBytes) {
        request.pause();
        const error = tooLarge(limits.maxBytes);
        if (isStreaming) onTooLarge(error);
        else reject(error);
      } else if (!isStreaming) {
        chunks.push(chunk);
        if (received <= limits.replayBytes) return;
        isStreaming = true;
        request.pause();
        resolve({ kind: "streamed", start: Buffer.concat(chunks), rest: request, length });
        chunks = [];
      }
    });
    request.once("end", () => {
      if (isStreaming) return;
      const bytes = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
      resolve(bytes.length === 0 ? NO_BODY : { kind: "whole", bytes });
    });
    request.once("error", () =>
      reject(new SignalboxError("gateway_malformed_request", { message: "The request body broke off" })),
    );
  });
}

function tooLarge(maxBytes: number): SignalboxError {
  return new SignalboxError("gateway_body_too_large", {
    message: `Request body too large (maximum ${maxBytes} bytes)`,
  });
}
