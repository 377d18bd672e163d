/**
 * node:http's response, with the headers and the accounting that every response has.
 *
 * Invariants:
 * 1. Every response carries the request id and the headers in `Tracking.added`, whichever code writes it. They are added inside `writeHead`:
 *    `setHeader` would make Node.js use its slow path for all headers.
 * 2. The bytes on the wire are those that node:http would write. Head, chunk framing and a small piece of body leave in one buffer and one
 *    system call; Node passes them to its socket as up to six buffers.
 * 3. While the listener drains, every response closes its connection, including those that are already running; of pipelined requests, that of the
 *    last one. A request that arrives behind such a response is not handled (RFC 9112, section 9.6).
 * See docs/decisions/0051 and docs/decisions/0070.
 */
import type { OutgoingHttpHeader } from "node:http";
import type { HeaderList } from "./http-exchange.ts";
import type { Share } from "../../core/shared-pool.ts";
import type { MemoryShare } from "./memory-budget.ts";
import { ServerResponse } from "./node-http.ts";
import type { TrackedRequest } from "./tracked-request.ts";

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
}

export class TrackedResponse extends ServerResponse<TrackedRequest> {
  /** A single property: each one added to Node's object has a cost. Undefined for responses that Node writes itself. */
  declare tracking: Tracking | undefined;

  override writeHead(statusCode: number, reason?: string | HeaderList, headers?: HeaderList): this {
    const { tracking } = this;
    if (tracking?.listener.isDraining === true && tracking.pipeline.latest === tracking) {
      this.shouldKeepAlive = false;
      tracking.pipeline.isClosing = true;
    }
    if (typeof reason === "string") return super.writeHead(statusCode, reason, withAdded(headers, tracking));
    return super.writeHead(statusCode, withAdded(reason ?? headers, tracking));
  }

  override write(...rest: unknown[]): boolean {
    const [chunk] = rest;
    if (rest.length === 1 && Buffer.isBuffer(chunk) && this.#writeJoined(chunk, false)) return true;
    return super.write(...(rest as [Buffer]));
  }

  override end(...rest: unknown[]): this {
    const [chunk] = rest;
    const isJoined = rest.length === 1 && Buffer.isBuffer(chunk) && this.#writeJoined(chunk, true);
    return super.end(...((isJoined ? [] : rest) as []));
  }

  /** Writes a piece of the body as one buffer. False, with nothing done, in every case that Node handles better. */
  #writeJoined(chunk: Buffer, isLast: boolean): boolean {
    const state = this as unknown as OutgoingState;
    const { socket } = this;
    if (
      // A response behind another one on its connection has no socket yet.
      socket === null ||
      !socket.writable ||
      this.writableEnded ||
      typeof state._header !== "string" ||
      !state._hasBody ||
      state._trailer !== "" ||
      state.outputData.length > 0 ||
      chunk.length === 0 ||
      chunk.length > (isLast ? MAX_LAST_BYTES : MAX_PIECE_BYTES) ||
      // Node has to report back-pressure.
      (!isLast && socket.writableLength > 0)
    ) {
      return false;
    }
    const head = state._headerSent ? "" : state._header;
    const before = this.chunkedEncoding ? `${head}${chunk.length.toString(16)}\r\n` : head;
    const after = this.chunkedEncoding ? (isLast ? "\r\n0\r\n\r\n" : "\r\n") : "";
    const joined = Buffer.allocUnsafe(before.length + chunk.length + after.length);
    joined.write(before, 0, "latin1");
    chunk.copy(joined, before.length);
    if (after !== "") joined.write(after, before.length + chunk.length, "latin1");
    state._headerSent = true;
    // The end of the chunked body has been written; `end` must not write it again.
    if (isLast) this.chunkedEncoding = false;
    socket.write(joined);
    return true;
  }
}

/** Larger bodies are not copied: the copy would cost more than the writes it saves. */
const MAX_LAST_BYTES = 64 * 1024;
/** Far below the high-water mark of a socket, so that a write to an empty socket never causes back-pressure. */
const MAX_PIECE_BYTES = 12 * 1024;

/** Node's own fields of a response that is being sent. */
interface OutgoingState {
  readonly _header: string | null;
  _headerSent: boolean;
  readonly _hasBody: boolean;
  readonly _trailer: string;
  readonly outputData: readonly unknown[];
}

/** An existing request id is kept: a relayed response carries the id of the server that created it. */
function withAdded(headers: HeaderList | undefined, tracking: Tracking | undefined): HeaderList {
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
