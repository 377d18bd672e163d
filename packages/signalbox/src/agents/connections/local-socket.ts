/**
 * A WebSocket of this process: frames, pings, and the limit for slow readers.
 *
 * Invariant: the bytes buffered for a slow reader are bounded. Beyond the limit the connection is closed with 1013 (try again later), and
 * terminated if the reader does not read the close frame.
 */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { ConnectionLimits } from "./connection-outlet.ts";
import type { ConnectionSocket } from "./connection-socket.ts";

/** How long a slow reader may take to answer the close frame. */
const SLOW_READER_GRACE_MS = 2000;
/** Space for the reason in a close frame (RFC 6455, section 5.5). */
export const MAX_REASON_BYTES = 123;

export class LocalSocket implements ConnectionSocket {
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  readonly #limits: ConnectionLimits;
  /** False from a ping until its pong. */
  isAlive = true;
  #isClosed = false;
  onFacts: (() => void) | undefined = undefined;

  constructor(webSocket: WebSocket, socket: Duplex, limits: ConnectionLimits) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#limits = limits;
  }

  get readyState(): number {
    return this.#webSocket.readyState;
  }

  get bufferedAmount(): number {
    return this.#socket.writableLength;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  write(frame: Buffer): void {
    if (this.#isClosed || !this.#socket.writable) return;
    if (this.#socket.writableLength > this.#limits.maxBufferedBytes)
      this.closeWithin(1013, "too slow", SLOW_READER_GRACE_MS);
    else this.#socket.write(frame);
  }

  close(code: number, reason: string): void {
    this.#isClosed = true;
    this.#webSocket.close(code, Buffer.byteLength(reason) > MAX_REASON_BYTES ? "" : reason);
  }

  /** Closes, and terminates a peer that does not answer the close frame in time. */
  closeWithin(code: number, reason: string, graceMs: number): void {
    this.close(code, reason);
    setTimeout(() => this.#webSocket.terminate(), graceMs).unref();
  }

  /** Terminates a connection that has not answered the last ping, otherwise pings it. */
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
}
