/** What areas know of a request besides its headers: id, path, trace, and its body on demand. */
import type { Payer } from "../contracts/own-server.ts";
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../core/overload.ts";
import {
  type BodyFailure,
  type BodyHandler,
  type BodyLimits,
  type HeldMemory,
  type HttpRequest,
  type MemoryShare,
  readBody,
} from "../engines/http-server/index.ts";
import type { ErrorDialect } from "./render-error.ts";
import { decodeSegments, type RequestTarget } from "./request-target.ts";
import { continueTrace, type TraceContext } from "../telemetry/trace-context.ts";

const CLOSE = { connection: "close" };

export class RequestContext {
  /** Sent back as `x-request-id`. */
  readonly id: string;
  readonly path: string;
  readonly query: string;
  /** The shared memory that the request uses until its response has ended. */
  readonly memory: HeldMemory;
  /** Format of errors, if the path decides it and not the area. */
  errorDialect: ErrorDialect | null = null;
  /** The answer does not leave this process. Only a call from inside the process sets it (`local-call.ts`). */
  staysInside = false;
  /** Who pays for a call from inside the process; undefined for the token of the credential. */
  chargedTo: Payer | undefined = undefined;
  readonly #request: HttpRequest;
  #segments: readonly string[] | undefined;
  #trace: TraceContext | undefined;

  constructor(id: string, target: RequestTarget, request: HttpRequest, memory: HeldMemory) {
    this.id = id;
    this.path = target.path;
    this.query = target.query;
    this.memory = memory;
    this.#request = request;
  }

  /** Decoded path segments. Throws `invalid_request` if the path cannot be decoded. */
  get segments(): readonly string[] {
    this.#segments ??= decodeSegments(this.path);
    return this.#segments;
  }

  /** Created on first use: most requests do not need it. */
  get trace(): TraceContext {
    this.#trace ??= continueTrace(this.#request.headers["traceparent"] as string | undefined);
    return this.#trace;
  }

  /** Reads the body with callbacks and reports failures as values, for areas with their own error codes. */
  receiveBody(limits: BodyLimits, handler: BodyHandler): void {
    readBody(this.#request, this.memory, limits, handler);
  }

  /** Reads the whole body. Rejects with the error for the client. */
  readBody(maxBytes: number, share?: MemoryShare): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const limits = share === undefined ? { maxBytes } : { maxBytes, share };
      this.receiveBody(limits, {
        onBody: (body) => resolve(body.kind === "whole" ? body.bytes : NO_BYTES),
        onFailure: (failure) => reject(toBodyError(failure, maxBytes)),
      });
    });
  }
}

const NO_BYTES = Buffer.from("");

function toBodyError(failure: BodyFailure, maxBytes: number): SignalboxError {
  switch (failure) {
    case "too_large":
      return new SignalboxError("body_too_large", {
        message: `Request body too large (maximum ${maxBytes} bytes)`,
        headers: CLOSE,
      });
    case "no_room":
      return overloaded(undefined, CLOSE);
    case "too_slow":
      return new SignalboxError("request_timeout", { headers: CLOSE });
    case "broken_off":
      return new SignalboxError("malformed_http", { message: "The request body broke off" });
    case "unsupported_coding":
      return new SignalboxError("malformed_http", {
        message: "Transfer-Encoding must be chunked",
        headers: CLOSE,
      });
  }
}
