/**
 * The accounting that every response has: its id, the memory that its request holds, its place among those of its connection, and the headers that
 * are added to it, whichever code writes it.
 */
import type { OutgoingHttpHeader } from "node:http";
import type { Share } from "../../core/shared-pool.ts";
import type { HeaderList } from "./http-exchange.ts";
import type { MemoryShare } from "./memory-budget.ts";

/**
 * A client may send requests without waiting for responses (RFC 9112, section 9.3.2). Clients that pipeline send a few dozen; a client that never
 * reads responses would fill the memory with 1 to 2 KB per request. With more unanswered requests the connection is closed.
 */
export const MAX_UNANSWERED = 100;

/** Shared by all responses of a listener. */
export interface ListenerState {
  isDraining: boolean;
}

/** Requests of one connection that have no complete response yet. */
export interface Pipeline {
  unanswered: number;
  /** Of the request that was received last. */
  latest: Tracking | null;
  /** A response has told the client that the connection is closed. */
  isClosing: boolean;
}

/** The same headers in the two forms that `writeHead` takes. */
export interface AddedHeaders {
  readonly record: Readonly<Record<string, string>>;
  readonly list: readonly string[];
}

/** What one request holds of what is shared. Released when its response has ended or its connection broke, so no code path can leak it. */
export class HeldMemory {
  #share: MemoryShare | null = null;
  #place: Share | null = null;
  #bytes = 0;
  #isOver = false;

  /** False when the bytes do not fit, or when the request has ended and could not release them. All bytes of a request are of one share. */
  hold(share: MemoryShare, bytes: number, isSmall = false): boolean {
    if (this.#share !== null && this.#share !== share)
      throw new Error("a request has one share of the memory");
    if (this.#isOver || !share.take(bytes, isSmall)) return false;
    this.#share = share;
    this.#bytes += bytes;
    return true;
  }

  /** Takes one place. False when there is none, or when the request has ended. */
  occupy(place: Share): boolean {
    if (this.#isOver || !place.take()) return false;
    this.#place = place;
    return true;
  }

  /** Transfers the memory that is held to the caller, who must call the function that is returned. */
  handOver(): () => void {
    const [share, bytes] = [this.#share, this.#bytes];
    this.#bytes = 0;
    return () => share?.release(bytes);
  }

  /** Releases everything; nothing can be held afterwards. */
  release(): void {
    this.#isOver = true;
    this.#place?.release();
    this.#place = null;
    if (this.#bytes === 0) return;
    this.#share?.release(this.#bytes);
    this.#bytes = 0;
  }
}

/** The accounting of one response. Its request uses shared memory until the response has ended. */
export class Tracking extends HeldMemory {
  readonly requestId: string;
  readonly startedAt = performance.now();
  readonly listener: ListenerState;
  readonly pipeline: Pipeline;
  /** Label in metrics. */
  area = "none";
  /** Headers that replace those of the same name. */
  added: AddedHeaders | null = null;

  constructor(requestId: string, listener: ListenerState, pipeline: Pipeline) {
    super();
    this.requestId = requestId;
    this.listener = listener;
    this.pipeline = pipeline;
  }

  /**
   * Called for the head of the response. True when it has to close its connection, because the listener drains: of pipelined requests, that
   * of the last one. A request that arrives behind such a response is not handled (RFC 9112, section 9.6).
   */
  closesConnection(): boolean {
    if (!this.listener.isDraining || this.pipeline.latest !== this) return false;
    this.pipeline.isClosing = true;
    return true;
  }
}

/** An existing request id is kept: a relayed response carries the id of the server that created it. */
export function withAdded(headers: HeaderList | undefined, tracking: Tracking | undefined): HeaderList {
  if (tracking === undefined) return headers ?? {};
  const { added, requestId } = tracking;
  if (Array.isArray(headers)) {
    // Callers that pass a list make it for this response and leave out the names of `added`.
    if (!hasId(headers)) headers.push("x-request-id", requestId);
    if (added !== null) headers.push(...added.list);
    return headers;
  }
  return { "x-request-id": requestId, ...headers, ...added?.record };
}

function hasId(headers: readonly OutgoingHttpHeader[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i];
    if (typeof name === "string" && name.length === 12 && name.toLowerCase() === "x-request-id") return true;
  }
  return false;
}
