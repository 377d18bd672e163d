/** What a listener runs, and within which limits. */
import type { Duplex } from "node:stream";
import type { HttpRequest, ServedResponse } from "./http-exchange.ts";
import type { Tracking } from "./tracking.ts";

/**
 * `own`: plain requests are parsed by this engine, and all others by node:http, on the same connection. `node`: all by node:http.
 */
export type ListenerEngine = "own" | "node";

export interface ListenerLimits {
  readonly maxHeaderBytes: number;
  /** From the first byte of a request to the end of its headers. */
  readonly headerTimeoutMs: number;
  /** From the first byte of a request to the end of its body. */
  readonly bodyTimeoutMs: number;
  /** Between two requests on a connection. */
  readonly idleTimeoutMs: number;
  readonly maxConnections: number;
}

/** Why bytes or a request are refused before the application sees them. */
export type ListenerRefusal =
  | "malformed"
  | "headers_too_large"
  | "too_slow"
  | "method_not_allowed"
  | "expectation_failed";

/** The application of a listener. */
export interface HttpApplication {
  /** The id of a request; without a request, a new one. */
  requestId(request?: HttpRequest): string;
  handle(request: HttpRequest, response: ServedResponse, tracking: Tracking): void;
  /** A WebSocket handshake. `head` are bytes that followed the request. */
  upgrade(request: HttpRequest, socket: Duplex, head: Buffer): void;
  /** Answers a request that is refused; its body is not read. */
  refuse(refusal: ListenerRefusal, response: ServedResponse, tracking: Tracking): void;
  /** A complete response for bytes that are not a request, or for a connection without a response object. */
  refusalText(refusal: ListenerRefusal, request?: HttpRequest): string;
  /** After the last byte of a response, or when its connection broke. */
  ended(response: ServedResponse, tracking: Tracking): void;
  /** A connection was opened (1) or closed (-1). */
  connection(change: 1 | -1): void;
  /** Bytes were refused that are not valid HTTP. */
  malformed(): void;
}
