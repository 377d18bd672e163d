/**
 * One direction of a session: gives messages of one socket to another one.
 *
 * Invariants:
 * 1. Events are handled in the order in which they arrived. An event may have to wait for a limit that nodes share; those that arrive meanwhile are
 *    held behind it.
 * 2. The socket is not read while an event waits, or while the other side does not read. `ws` still emits what it has read already, so at most one
 *    read of the socket and one message are held.
 */
import type { WebSocket } from "ws";

const HIGH_WATER_BYTES = 1024 * 1024;
const LOW_WATER_BYTES = 256 * 1024;

/** Returns a promise if later events must wait. It must not reject. */
type Handle = () => Promise<void> | null;

interface HeldEvent {
  readonly handle: Handle;
  readonly bytes: number;
}

export class MessageLane {
  /** Since when the other side does not read; null while it does. */
  stalledSince: number | null = null;
  /** Bytes of messages that are held. */
  heldBytes = 0;
  readonly #from: WebSocket;
  readonly #to: WebSocket;
  readonly #held: HeldEvent[] = [];
  #isWaiting = false;
  #isStopped = false;

  constructor(from: WebSocket, to: WebSocket) {
    this.#from = from;
    this.#to = to;
  }

  /** Handles an event of the socket, now or behind those before it. */
  arrive(bytes: number, handle: Handle): void {
    if (this.#isStopped) return;
    if (this.#isWaiting) {
      this.#held.push({ handle, bytes });
      this.heldBytes += bytes;
      return;
    }
    const waiting = handle();
    if (waiting !== null) void this.#wait(waiting);
  }

  send(data: Buffer, isBinary: boolean): void {
    this.#to.send(data, { binary: isBinary }, () => {
      if (this.stalledSince === null || this.#to.bufferedAmount > LOW_WATER_BYTES) return;
      this.stalledSince = null;
      this.#setReading();
    });
    if (this.#to.bufferedAmount <= HIGH_WATER_BYTES) return;
    this.stalledSince ??= performance.now();
    this.#setReading();
  }

  /** Drops what is held. The socket is read to its end, or its close frame would wait behind unread messages. */
  stop(): void {
    this.#isStopped = true;
    this.#held.length = 0;
    this.heldBytes = 0;
    this.#setReading();
  }

  async #wait(first: Promise<void>): Promise<void> {
    this.#isWaiting = true;
    this.#setReading();
    await first;
    for (let event = this.#held.shift(); event !== undefined; event = this.#held.shift()) {
      this.heldBytes -= event.bytes;
      await event.handle();
    }
    this.#isWaiting = false;
    this.#setReading();
  }

  #setReading(): void {
    const isReading = this.#isStopped || (!this.#isWaiting && this.stalledSince === null);
    if (isReading && this.#from.isPaused) this.#from.resume();
    else if (!isReading && !this.#from.isPaused) this.#from.pause();
  }
}
