/**
 * node:http's response with what the dispatch keeps per request: the id every answer carries, and what is measured at its end.
 *
 * The id is added inside `writeHead`, not with `setHeader` before it: a response that has headers set takes node's slow path for
 * all of them, which cost more than everything else the dispatch does. So are the headers that keep foreign content from being a page
 * of ours: here no answer of an area can leave without them, whoever writes it.
 *
 * An answer's last bytes leave together with what is left of its head and framing in one piece. Node would pass head, framing and body on
 * as up to six, which its sockets gather again.
 */
import type { OutgoingHttpHeader, OutgoingHttpHeaders } from "node:http";
import { ServerResponse } from "./node-http.ts";
import { INERT_HEADER_LIST, INERT_HEADERS } from "../../http/foreign-answer.ts";
import { HeldMemory } from "./held-memory.ts";
import type { Pipeline } from "./pipeline.ts";
import type { TrackedRequest } from "./tracked-request.ts";

type HeaderList = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Shared by all responses of a listener, so that one store reaches those that are still being made. */
export interface ListenerState {
  isDraining: boolean;
}

/** What the dispatch knows of one answer. */
export class Tracking extends HeldMemory {
  readonly requestId: string;
  readonly startedAt = performance.now();
  readonly listener: ListenerState;
  readonly pipeline: Pipeline;
  area = "none";
  /** The answer's content is not ours: it leaves with `INERT_HEADERS`. */
  isForeign = false;

  constructor(requestId: string, listener: ListenerState, pipeline: Pipeline) {
    super();
    this.requestId = requestId;
    this.listener = listener;
    this.pipeline = pipeline;
  }
}

export class TrackedResponse extends ServerResponse<TrackedRequest> {
  /** One property, set by the dispatch: every further one on node's own object costs more. Missing where the dispatch is not reached. */
  declare tracking: Tracking | undefined;

  override writeHead(statusCode: number, reason?: string | HeaderList, headers?: HeaderList): this {
    const { tracking } = this;
    if (tracking?.listener.isDraining === true) this.shouldKeepAlive = false;
    if (typeof reason === "string") return super.writeHead(statusCode, reason, withOwn(headers, tracking));
    return super.writeHead(statusCode, withOwn(reason ?? headers, tracking));
  }

  override end(...rest: unknown[]): this {
    const [chunk] = rest;
    const isJoined = rest.length === 1 && Buffer.isBuffer(chunk) && this.#writeJoined(chunk);
    return super.end(...((isJoined ? [] : rest) as []));
  }

  /** Writes the last of the body; false when that is better left to node, and nothing was done. */
  #writeJoined(chunk: Buffer): boolean {
    const state = this as unknown as OutgoingState;
    const { socket } = this;
    if (
      // An answer behind another one on its connection has no socket yet; one without body or with trailers is not what this is for.
      socket === null ||
      !socket.writable ||
      this.writableEnded ||
      typeof state._header !== "string" ||
      !state._hasBody ||
      state._trailer !== "" ||
      state.outputData.length > 0 ||
      chunk.length === 0 ||
      chunk.length > MAX_JOINED_BYTES
    ) {
      return false;
    }
    const head = state._headerSent ? "" : state._header;
    const before = this.chunkedEncoding ? `${head}${chunk.length.toString(16)}\r\n` : head;
    const after = this.chunkedEncoding ? "\r\n0\r\n\r\n" : "";
    const joined = Buffer.allocUnsafe(before.length + chunk.length + after.length);
    joined.write(before, 0, "latin1");
    chunk.copy(joined, before.length);
    if (after !== "") joined.write(after, before.length + chunk.length, "latin1");
    state._headerSent = true;
    // Nothing is left to be framed.
    this.chunkedEncoding = false;
    socket.write(joined);
    return true;
  }
}

/** A larger body is not copied to save a few writes. */
const MAX_JOINED_BYTES = 64 * 1024;

/** What node keeps of an answer that is being sent. */
interface OutgoingState {
  readonly _header: string | null;
  _headerSent: boolean;
  readonly _hasBody: boolean;
  readonly _trailer: string;
  readonly outputData: readonly unknown[];
}

/** An id among the headers wins: a relayed answer keeps the one of whoever made it. */
function withOwn(headers: HeaderList | undefined, tracking: Tracking | undefined): HeaderList {
  if (tracking === undefined) return headers ?? {};
  const id = tracking.requestId;
  if (Array.isArray(headers)) {
    // Lists come from the gateway's relay alone, which makes them anew for each answer and leaves out what is added here.
    if (!hasId(headers)) headers.push("x-request-id", id);
    if (tracking.isForeign) headers.push(...INERT_HEADER_LIST);
    return headers;
  }
  return tracking.isForeign
    ? { "x-request-id": id, ...headers, ...INERT_HEADERS }
    : { "x-request-id": id, ...headers };
}

function hasId(headers: readonly OutgoingHttpHeader[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i];
    if (typeof name === "string" && name.length === 12 && name.toLowerCase() === "x-request-id") return true;
  }
  return false;
}
