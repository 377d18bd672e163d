/**
 * One WebSocket of an instance. It belongs to a `ConnectionGroup` and stays open while the instance sleeps.
 *
 *   joining → open → closed
 *
 * Invariants:
 * 1. Whatever is sent passes the group's gate; protocol frames and messages of the agent leave in the order they were produced.
 * 2. What waits in the socket for a slow reader is bounded: past the limit the connection is closed (1013, come back later) and, if the
 *    reader does not even take that, cut.
 * 3. Once its credential has ended, nothing the connection sent is acted on any more, not even what waits for its turn.
 */
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import type { WebSocket } from "ws";
import { closeCodeOf } from "../../http/render-error.ts";
import type { Connection } from "../api/connection.ts";
import type { ConnectionGroup } from "./connection-group.ts";
import { toFrame } from "../../engines/http-server/index.ts";

/** How long a reader that is too slow may take for the goodbye. */
const SLOW_READER_GRACE_MS = 2000;
/** How long a peer whose credential has ended may take for the goodbye. */
const ENDED_GRACE_MS = 500;
/** What fits in a control frame beside the code (RFC 6455, section 5.5). */
export const MAX_REASON_BYTES = 123;

export class LiveConnection implements Connection {
  readonly id: string;
  readonly uri: string;
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  readonly #group: ConnectionGroup;
  tags: readonly string[];
  isReadonly: boolean;
  /** False from a ping until its answer. */
  isAlive = true;
  /** False until the connect turn has run: broadcasts before it are not for this connection. */
  isJoined = false;
  #isClosed = false;
  #hasLostCredential = false;
  #state: unknown = null;

  constructor(
    group: ConnectionGroup,
    id: string,
    uri: string,
    webSocket: WebSocket,
    socket: Duplex,
    isReadonly: boolean,
  ) {
    this.#group = group;
    this.id = id;
    this.uri = uri;
    this.tags = [id];
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.isReadonly = isReadonly;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get state(): unknown {
    return this.#state;
  }

  setState(state: unknown): unknown {
    this.#state =
      typeof state === "function" ? (state as (previous: unknown) => unknown)(this.#state) : state;
    return this.#state;
  }

  send(message: string | Uint8Array): void {
    const frame = toFrame(message);
    this.#group.output(() => this.write(frame));
  }

  close(code = 1000, reason = ""): void {
    if (!isCloseCode(code)) throw new RangeError(`${code} is no code that a connection can be closed with`);
    this.#group.output(() => this.closeNow(code, reason));
  }

  /** Writes a whole frame past the gate. */
  write(frame: Buffer): void {
    if (this.#isClosed || !this.#socket.writable) return;
    if (this.#socket.writableLength > this.#group.limits.maxBufferedBytes) {
      this.closeNow(1013, "too slow");
      setTimeout(() => this.#webSocket.terminate(), SLOW_READER_GRACE_MS).unref();
      return;
    }
    this.#socket.write(frame);
  }

  closeNow(code: number, reason: string): void {
    this.#isClosed = true;
    this.#webSocket.close(code, Buffer.byteLength(reason) > MAX_REASON_BYTES ? "" : reason);
  }

  /** Closes the connection for good: its token or session was revoked or has expired. */
  endWithCredential(): void {
    this.#hasLostCredential = true;
    const { code, reason } = closeCodeOf(new SignalboxError("unauthenticated"));
    this.closeNow(code, reason);
    setTimeout(() => this.#webSocket.terminate(), ENDED_GRACE_MS).unref();
  }

  /** Throws unless the connection may act; called when the turn of something it sent begins. */
  requireWritable(): void {
    if (this.#hasLostCredential) throw new SignalboxError("unauthenticated");
    if (this.isReadonly) throw new SignalboxError("agent_readonly");
  }

  /** Cuts a connection whose last ping went unanswered, else pings it again. */
  checkAlive(): void {
    if (!this.isAlive) {
      this.#webSocket.terminate();
      return;
    }
    this.isAlive = false;
    this.#webSocket.ping();
  }

  pause(): void {
    this.#webSocket.pause();
  }

  resume(): void {
    this.#webSocket.resume();
  }

  markClosed(): void {
    this.#isClosed = true;
  }
}

/** RFC 6455, section 7.4: those that may stand in a close frame. */
function isCloseCode(code: number): boolean {
  if (!Number.isInteger(code)) return false;
  return (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999);
}
