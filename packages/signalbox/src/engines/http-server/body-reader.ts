/**
 * Reads request bodies, for every area, within limits.
 *
 * Invariants:
 * 1. A body over `maxBytes` is refused: before its first byte when its declared length exceeds it, otherwise as soon as it does.
 * 2. Up to `keepBytes` a body is kept whole; beyond that its beginning is kept and the rest is left in the stream.
 * 3. Bytes in memory count against the caller's share from their arrival until the request's response has ended.
 * 4. After a failure no more data is read. The caller closes the connection: reading the rest of a refused upload would help an attacker.
 * 5. A transfer coding other than chunked is refused, because Node.js decodes no other.
 * See docs/decisions/0073.
 */
import { NO_BODY, type RequestBody } from "../../core/request-body.ts";
import type { BodyReceiver } from "./collected-body.ts";
import type { HttpRequest } from "./http-exchange.ts";
import type { MemoryShare, Upload } from "./memory-budget.ts";
import type { HeldMemory } from "./tracking.ts";

/** Memory of one piece in addition to its bytes: a Buffer object and list entries. A body may arrive in pieces of one byte. */
export const PIECE_OVERHEAD_BYTES = 256;
/** A body up to this size finds room when larger ones are refused. */
const SMALL_BYTES = 64 * 1024;

export interface BodyLimits {
  readonly maxBytes: number;
  /** Default: `maxBytes`, every body is kept whole. */
  readonly keepBytes?: number;
  /** The caller's part of the memory for bodies. Default: memory is limited by `maxBytes` alone. */
  readonly share?: MemoryShare;
}

export type BodyFailure = "too_large" | "broken_off" | "no_room" | "too_slow" | "unsupported_coding";

/** Exactly one of `onBody` and `onFailure` is called; `onFailure("too_large")` may follow `onBody` when a streamed body grows too large. */
export interface BodyHandler {
  onBody(body: RequestBody): void;
  onFailure(failure: BodyFailure): void;
}

export function hasBody({ headers }: HttpRequest): boolean {
  const length = headers["content-length"];
  return length === undefined ? headers["transfer-encoding"] !== undefined : length !== "0";
}

export function readBody(
  request: HttpRequest,
  memory: HeldMemory,
  limits: BodyLimits,
  handler: BodyHandler,
): void {
  if (!hasBody(request)) {
    handler.onBody(NO_BODY);
    return;
  }
  const { headers } = request;
  const length = headers["content-length"] === undefined ? null : Number(headers["content-length"]);
  if (length === null && headers["transfer-encoding"]?.toLowerCase() !== "chunked") {
    handler.onFailure("unsupported_coding");
  } else if (length !== null && length > limits.maxBytes) {
    handler.onFailure("too_large");
  } else {
    new BodyReader(request, memory, length, limits, handler).start();
  }
}

class BodyReader implements BodyReceiver {
  readonly #request: HttpRequest;
  readonly #memory: HeldMemory;
  readonly #length: number | null;
  readonly #limits: BodyLimits;
  readonly #handler: BodyHandler;
  #received = 0;
  #upload: Upload | null = null;
  #isCollecting = false;
  /** Pieces that are not collected by the request itself. */
  #pieces: Buffer[] = [];
  #state: "keeping" | "streaming" | "over" = "keeping";

  constructor(
    request: HttpRequest,
    memory: HeldMemory,
    length: number | null,
    limits: BodyLimits,
    handler: BodyHandler,
  ) {
    this.#request = request;
    this.#memory = memory;
    this.#length = length;
    this.#limits = limits;
    this.#handler = handler;
  }

  start(): void {
    if (this.#limits.share?.hasTotalTime === true) this.#watch();
    const request = this.#request;
    // A client that waits for `100 Continue` receives it when the stream begins to flow.
    this.#isCollecting =
      this.#length !== null && this.#length <= this.#keepBytes && request.headers.expect === undefined;
    // What has arrived may be passed on before `collect` returns.
    if (this.#isCollecting && request.collect(this)) return;
    this.#isCollecting = false;
    const { body } = request;
    body.on("data", (chunk: Buffer) => this.#onData(chunk));
    body.on("end", () => {
      if (this.#state === "keeping") this.onBody(join(this.#pieces));
    });
    body.on("error", () => this.onBroken());
    // A body that breaks off may end with `close` alone.
    body.on("close", () => this.onBroken());
  }

  get #keepBytes(): number {
    return this.#limits.keepBytes ?? this.#limits.maxBytes;
  }

  onPiece(length: number): void {
    this.#count(length);
  }

  onBody(bytes: Buffer): void {
    this.#settle("over");
    this.#handler.onBody(bytes.length === 0 ? NO_BODY : { kind: "whole", bytes });
  }

  onBroken(): void {
    if (this.#state !== "keeping") return;
    this.#settle("over");
    this.#handler.onFailure("broken_off");
  }

  #onData(chunk: Buffer): void {
    if (this.#state === "over") return;
    if (this.#received + chunk.length > this.#limits.maxBytes) {
      this.#fail("too_large");
    } else if (this.#state === "streaming") {
      this.#received += chunk.length;
    } else if (this.#count(chunk.length)) {
      this.#pieces.push(chunk);
      if (this.#received > this.#keepBytes) this.#beginStreaming();
    }
  }

  #beginStreaming(): void {
    this.#settle("streaming");
    this.#request.body.pause();
    const start = join(this.#pieces);
    this.#pieces = [];
    this.#handler.onBody({ kind: "streamed", start, rest: this.#request.body, length: this.#length });
  }

  /** Counts a piece that is kept. Returns false if the body failed because of it. */
  #count(bytes: number): boolean {
    this.#received += bytes;
    const { share } = this.#limits;
    if (share === undefined) return true;
    // Most bodies arrive in one piece, and are not watched.
    if (this.#length === null || this.#received < this.#length) this.#watch();
    this.#upload?.progress(bytes);
    const isSmall = Math.max(this.#received, this.#length ?? 0) <= SMALL_BYTES;
    if (this.#memory.hold(share, bytes + PIECE_OVERHEAD_BYTES, isSmall)) return true;
    this.#fail("no_room");
    return false;
  }

  #watch(): void {
    this.#upload ??= this.#limits.share?.watch(() => this.#fail("too_slow")) ?? null;
  }

  #settle(state: "streaming" | "over"): void {
    this.#state = state;
    if (this.#upload === null) return;
    this.#limits.share?.settle(this.#upload);
    this.#upload = null;
  }

  #fail(failure: BodyFailure): void {
    const wasStreaming = this.#state === "streaming";
    this.#settle("over");
    this.#pieces = [];
    if (this.#isCollecting) this.#request.stopCollecting();
    else this.#request.body.pause();
    // The beginning of a streamed body is in use elsewhere and stays counted until the request ends.
    if (!wasStreaming) this.#memory.release();
    this.#handler.onFailure(failure);
  }
}

function join(pieces: readonly Buffer[]): Buffer {
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
}
