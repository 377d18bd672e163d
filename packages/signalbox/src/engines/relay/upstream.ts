/**
 * One exchange with an upstream server, as the caller of the relay sees it: the request, the events of its response, and how an
 * exchange fails. Everything an author needs in order to use `UpstreamClient` is in this file.
 */
import type { RequestBody } from "../../core/request-body.ts";

/** The server to connect to. Connections are pooled by `key`. */
export interface Origin {
  readonly key: string;
  readonly isTls: boolean;
  readonly hostname: string;
  readonly port: number;
  /** Value of the `host` header. */
  readonly hostHeader: string;
  /** False for an address that the operator did not choose: the relay then connects to public addresses only (invariant 6). */
  readonly mayBePrivate: boolean;
}

export function toOrigin(url: URL, mayBePrivate: boolean): Origin {
  const isTls = url.protocol === "https:";
  return {
    key: `${url.origin}${mayBePrivate ? "" : " public"}`,
    isTls,
    hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (isTls ? 443 : 80) : Number(url.port),
    hostHeader: url.host,
    mayBePrivate,
  };
}

export interface UpstreamRequest {
  readonly origin: Origin;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /**
   * Name, value, name, value, … without `host` and without framing. They are written as they are: the caller guarantees that no name
   * or value contains a line break.
   */
  readonly headers: readonly string[];
  readonly body: RequestBody;
  /** Raises the client's stall limit for this exchange; a caller that wants a shorter one aborts. */
  readonly stallTimeoutMs?: number;
}

export interface ResponseHead {
  readonly status: number;
  readonly statusText: string;
  /** Name, value, name, value, …; names as sent. */
  readonly rawHeaders: readonly string[];
  /** Value of the first `content-type` header; empty when there is none. */
  readonly contentType: string;
}

/** Receives the events of one exchange: `onHead` once, `onBody` at least once, or `onFailure` at any point before the last `onBody`. */
export interface UpstreamHandler {
  onHead(head: ResponseHead): void;
  /** The body bytes of one read, without framing. The buffer belongs to the handler; `isLast` is true exactly once. */
  onBody(chunk: Buffer, isLast: boolean): void;
  /** All events of one read have been delivered, and the response is not complete. */
  onReadEnd(): void;
  /** No event follows. */
  onFailure(failure: UpstreamFailure): void;
}

/** Control over a running exchange. After its last event all three methods do nothing. */
export interface UpstreamExchange {
  /** Stops reading; the full socket slows the upstream down. */
  pause(): void;
  resume(): void;
  /** Closes the connection; no event follows. */
  abort(): void;
}

export interface UpstreamTimeouts {
  readonly connectTimeoutMs: number;
  /** From the written request to the first byte of the response. */
  readonly firstByteTimeoutMs: number;
  /** Between two reads of a response, and for how long the caller may keep an exchange paused. */
  readonly stallTimeoutMs: number;
  /** How long an idle connection is kept; shorter when the server announces less. */
  readonly idleTimeoutMs: number;
}

/** `timeout` covers both "no first byte" and "stopped in the middle"; `refused`: this server has no room for the response. */
export type UpstreamFailureKind = "unreachable" | "broken" | "timeout" | "refused";

export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  readonly kind: UpstreamFailureKind;

  constructor(kind: UpstreamFailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}
