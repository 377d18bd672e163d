/**
 * node:http's response, with the headers and the accounting that every response has (`tracking.ts`).
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
import type { HeaderList } from "./http-exchange.ts";
import { ServerResponse } from "./node-http.ts";
import type { TrackedRequest } from "./tracked-request.ts";
import { type Tracking, withAdded } from "./tracking.ts";

export class TrackedResponse extends ServerResponse<TrackedRequest> {
  /** A single property: each one added to Node's object has a cost. Undefined for responses that Node writes itself. */
  declare tracking: Tracking | undefined;

  override writeHead(statusCode: number, reason?: string | HeaderList, headers?: HeaderList): this {
    const { tracking } = this;
    if (tracking?.closesConnection() === true) this.shouldKeepAlive = false;
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
