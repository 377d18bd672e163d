/**
 * Keeps room for new connections. When nearly all places are taken, the connections that have waited longest for a request are closed: without
 * that, a stranger who opens `maxConnections` connections and sends nothing, or next to nothing, shuts everybody else out.
 *
 * Invariants:
 * 1. A connection with a complete request in progress, or a WebSocket, is never closed for the room of others. Nor is one whose request arrives at a
 *    bearable speed (`isSlow`).
 * 2. The connection that has just been opened is not closed: it had no time to send a request.
 * 3. `maxConnections` is exact. Connections beyond it are refused by node:net.
 */
import type { Socket } from "node:net";
import type { WaitingConnection } from "./tracking.ts";

/** Places that are kept free, as a share of all and at most. As many connections may arrive before those that are closed have gone. */
const FREE_SHARE = 1 / 8;
const MAX_FREE = 64;

/** A modem is faster, and small bodies arrive with their head. */
const SLOW_BYTES_PER_MS = 1;
const MIN_AGE_MS = 1000;

/** Whether a request that has arrived in part waits for its client. */
export function isSlow(bytes: number, ageMs: number): boolean {
  return ageMs >= MIN_AGE_MS && bytes < ageMs * SLOW_BYTES_PER_MS;
}

export class ConnectionRoom {
  readonly #crowdedAt: number;
  readonly #closedAtOnce: number;
  readonly #waiting: () => WaitingConnection[];

  /** `waiting` lists the connections that wait for their clients. */
  constructor(maxConnections: number, waiting: () => WaitingConnection[]) {
    const free = Math.min(MAX_FREE, Math.floor(maxConnections * FREE_SHARE));
    this.#crowdedAt = maxConnections - free;
    // All of them are listed each time: with half of the free places, one arrival in dozens pays for it.
    this.#closedAtOnce = Math.ceil(free / 2);
    this.#waiting = waiting;
  }

  /** `count` connections are open, with the one that was just opened. */
  opened(socket: Socket, count: number): void {
    if (count <= this.#crowdedAt) return;
    const waiting = this.#waiting().filter((one) => one.socket !== socket);
    waiting.sort((a, b) => a.since - b.since);
    for (const one of waiting.slice(0, this.#closedAtOnce)) one.socket.destroy();
  }
}
