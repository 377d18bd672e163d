/**
 * Sends requests upstream over kept-alive connections, one pool per origin.
 *
 * `UpstreamCall` is one request and its response, whichever connection carries it: a call moves to a new connection when the pooled
 * one turns out to be closed (invariant 3). Its states are waiting (for a connection or for the head) → receiving → ended. `ended` is
 * reached exactly once, by the last body chunk, by a failure or by `abort`; no event follows it.
 * See docs/decisions/0010.
 */
import { isPrivateHost } from "../ip-address/index.ts";
import { type CarriedCall, type Carrier, Connection, type ConnectionOwner } from "./connection.ts";
import { SuspectOrigins } from "./suspect-origins.ts";
import {
  type Origin,
  type ResponseHead,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamRequest,
  type UpstreamTimeouts,
} from "./upstream.ts";

/** Idle connections kept per origin; beyond it a connection that becomes idle is closed. */
const MAX_IDLE = 256;

export class UpstreamClient {
  readonly #timeouts: UpstreamTimeouts;
  readonly #pools = new Map<string, OriginPool>();
  readonly #suspects = new SuspectOrigins();
  #isClosed = false;

  constructor(timeouts: UpstreamTimeouts) {
    this.#timeouts = timeouts;
  }

  /** Sends one request. Events are delivered to the handler later, never before `send` returns. */
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamExchange {
    const call = new UpstreamCall(request, handler);
    const { origin } = request;
    if (this.#isClosed) {
      queueMicrotask(() => call.fail(new UpstreamFailure("unreachable", "the client is closed")));
      return call;
    }
    if (!origin.mayBePrivate && isPrivateHost(origin.hostname)) {
      // A literal address is never resolved, so the checking look-up does not see it.
      queueMicrotask(() => call.fail(new UpstreamFailure("unreachable", "the address is not public")));
      return call;
    }
    let pool = this.#pools.get(origin.key);
    if (pool === undefined) {
      pool = new OriginPool(origin, this.#timeouts, this.#suspects, () => this.#pools.delete(origin.key));
      this.#pools.set(origin.key, pool);
    }
    pool.send(call);
    return call;
  }

  /** Closes every connection; running calls fail. */
  close(): void {
    this.#isClosed = true;
    for (const pool of this.#pools.values()) pool.close();
  }
}

class OriginPool implements ConnectionOwner {
  readonly timeouts: UpstreamTimeouts;
  session: Buffer | undefined;
  readonly #origin: Origin;
  readonly #suspects: SuspectOrigins;
  readonly #onEmpty: () => void;
  readonly #all = new Set<Connection>();
  /** Last in, first out: the server is least likely to have closed the connection that was used most recently. */
  readonly #idle: Connection[] = [];

  constructor(origin: Origin, timeouts: UpstreamTimeouts, suspects: SuspectOrigins, onEmpty: () => void) {
    this.#origin = origin;
    this.#suspects = suspects;
    this.timeouts = timeouts;
    this.#onEmpty = onEmpty;
  }

  send(call: UpstreamCall): void {
    // A streamed body can be sent only once, so it gets a connection that the server cannot have closed yet.
    const pooled = call.request.body.kind === "streamed" ? undefined : this.#idle.pop();
    (pooled ?? this.#open()).send(call);
  }

  resend(call: CarriedCall): void {
    this.#open().send(call);
  }

  onIdle(connection: Connection): void {
    if (this.#idle.length >= MAX_IDLE || this.#suspects.has(this.#origin.key)) connection.destroy();
    else this.#idle.push(connection);
  }

  onStrayBytes(): void {
    this.#suspects.add(this.#origin.key);
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  onClosed(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    if (this.#all.size === 0) this.#onEmpty();
  }

  close(): void {
    for (const connection of this.#all) connection.destroy();
  }

  #open(): Connection {
    const connection = new Connection(this, this.#origin);
    this.#all.add(connection);
    return connection;
  }
}

class UpstreamCall implements UpstreamExchange, CarriedCall {
  readonly request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  #carrier: Carrier | null = null;
  #state: "waiting" | "receiving" | "ended" = "waiting";
  #isPaused = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler) {
    this.request = request;
    this.#handler = handler;
  }

  get isEnded(): boolean {
    return this.#state === "ended";
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  attach(carrier: Carrier): void {
    this.#carrier = carrier;
  }

  // When a call has ended, its connection may already carry another one.
  pause(): void {
    if (this.#state === "ended") return;
    this.#isPaused = true;
    this.#carrier?.pause();
  }

  resume(): void {
    if (this.#state === "ended") return;
    this.#isPaused = false;
    this.#carrier?.resume();
  }

  abort(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#carrier?.destroy();
  }

  onHead(head: ResponseHead): void {
    if (this.#state !== "waiting") return;
    this.#state = "receiving";
    this.#handler.onHead(head);
  }

  onBody(chunk: Buffer, isLast: boolean): void {
    if (this.#state !== "receiving") return;
    if (isLast) this.#state = "ended";
    // The chunk is part of the read buffer, which the next read of any connection overwrites.
    this.#handler.onBody(chunk.length === 0 ? chunk : copyOut(chunk), isLast);
  }

  onReadEnd(): void {
    if (this.#state === "receiving") this.#handler.onReadEnd();
  }

  fail(failure: UpstreamFailure): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#handler.onFailure(failure);
  }
}

/**
 * Response bytes on their way to the handler are copied into slabs: a buffer of its own for each read costs an allocation and later a
 * collection, and Node's own pool of 8 KiB is too small for one read of a stream. A slab lives as long as any slice of it, so bytes
 * that are kept longer than their call must be copied again (`KeptBody`).
 */
const SLAB_BYTES = 64 * 1024;
/** A larger chunk gets a buffer of its own, because it would leave too much of a slab unused. */
const MAX_SLICE_BYTES = SLAB_BYTES / 4;

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
let usedBytes = 0;

function copyOut(bytes: Buffer): Buffer {
  const { length } = bytes;
  if (length > MAX_SLICE_BYTES) return Buffer.from(bytes);
  if (usedBytes + length > SLAB_BYTES) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    usedBytes = 0;
  }
  const slice = slab.subarray(usedBytes, usedBytes + length);
  usedBytes += length;
  bytes.copy(slice);
  return slice;
}
