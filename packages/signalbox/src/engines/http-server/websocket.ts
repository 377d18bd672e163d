/**
 * A WebSocket of this process: frames, pings, and the limit for slow readers.
 *
 * Invariant: the bytes buffered for a slow reader are bounded. Beyond the limit the connection is closed with 1013 (try again later), and
 * terminated if the reader does not read the close frame.
 */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { afterAwakeTime } from "../../core/awake-time.ts";

/** Bytes that may be buffered for one slow reader. */
export interface SocketLimits {
  readonly maxBufferedBytes: number;
}

const FINAL_TEXT = 0x81;
const FINAL_BINARY = 0x82;
/** How long a slow reader may take to answer the close frame. */
const SLOW_READER_GRACE_MS = 2000;
/** Space for the reason in a close frame (RFC 6455, section 5.5). */
export const MAX_REASON_BYTES = 123;

export class LocalSocket {
  readonly #webSocket: WebSocket;
  readonly #socket: Duplex;
  readonly #limits: SocketLimits;
  /** False from a ping until its pong. */
  isAlive = true;
  #isClosed = false;

  constructor(webSocket: WebSocket, socket: Duplex, limits: SocketLimits) {
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
    const cancel = afterAwakeTime(graceMs, () => this.#webSocket.terminate());
    this.#webSocket.once("close", cancel);
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

/** A whole WebSocket frame as bytes (RFC 6455, section 5.2), made once and written to every socket of a broadcast. Servers do not mask. */
export function toFrame(message: string | Uint8Array): Buffer {
  const isText = typeof message === "string";
  const length = isText ? Buffer.byteLength(message) : message.byteLength;
  const headerLength = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(headerLength + length);
  frame[0] = isText ? FINAL_TEXT : FINAL_BINARY;
  if (headerLength === 2) frame[1] = length;
  else if (headerLength === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  if (isText) frame.write(message, headerLength, "utf8");
  else frame.set(message, headerLength);
  return frame;
}
