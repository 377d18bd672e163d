/**
 * Keeps room for new connections. When nearly all places are taken, the connections that have waited longest for their clients are closed: without
 * that, a stranger who opens `maxConnections` connections and sends nothing, or next to nothing, or reads nothing, shuts everybody else out.
 *
 * Invariants:
 * 1. A connection whose request is in progress, or a WebSocket, is never closed for the room of others, unless its client is the one that is waited for:
 *    the request arrives slowly (`isSlow`), or nothing of the response is read for a second.
 * 2. The connection that has just been opened is not closed: it had no time to send a request.
 * 3. `maxConnections` is exact. Connections beyond it are refused by node:net.
 */
import type { Socket } from "node:net";

/** An open connection. */
export interface OpenConnection {
  readonly socket: Socket;
  /** Since when (`performance.now()`) it waits for a request, or for the rest of one; null while the server is at work. */
  readonly waitingSince: number | null;
}

/** Bytes of a response that a client has not read, when they were first seen. */
interface Unread {
  readonly sent: number;
  readonly since: number;
}

/** Places that are kept free, as a share of all and at most. As many connections may arrive before those that are closed have gone. */
const FREE_SHARE = 1 / 8;
const MAX_FREE = 64;
/** Listing ten thousand connections takes a millisecond or two. */
const REST_MS = 100;

/** A modem is faster, and small bodies arrive with their head. */
const SLOW_BYTES_PER_MS = 1;
const MIN_WAIT_MS = 1000;

/** Whether a request that has arrived in part waits for its client. */
export function isSlow(bytes: number, ageMs: number): boolean {
  return ageMs >= MIN_WAIT_MS && bytes < ageMs * SLOW_BYTES_PER_MS;
}

export class ConnectionRoom {
  readonly #crowdedAt: number;
  readonly #closedAtOnce: number;
  readonly #list: () => OpenConnection[];
  #unread = new WeakMap<Socket, Unread>();
  #restsUntil = 0;

  /** `list` returns all connections but WebSockets. */
  constructor(maxConnections: number, list: () => OpenConnection[]) {
    const free = Math.min(MAX_FREE, Math.floor(maxConnections * FREE_SHARE));
    this.#crowdedAt = maxConnections - free;
    // All are listed each time: with half of the free places, one arrival in dozens pays for it.
    this.#closedAtOnce = Math.ceil(free / 2);
    this.#list = list;
  }

  /** `count` connections are open, with the one that has arrived. Null: it was refused, because all places are taken; the next one is to find room. */
  arrived(socket: Socket | null, count: number): void {
    const now = performance.now();
    if (count <= this.#crowdedAt || now < this.#restsUntil) return;
    const waiting: { readonly socket: Socket; readonly since: number }[] = [];
    for (const one of this.#list()) {
      const since = one.waitingSince ?? this.#unreadSince(one.socket, now);
      if (since !== null && one.socket !== socket) waiting.push({ socket: one.socket, since });
    }
    waiting.sort((a, b) => a.since - b.since);
    for (const one of waiting.slice(0, this.#closedAtOnce)) one.socket.destroy();
    // Few wait for their clients: to list all for each arrival would be an attack of its own.
    if (waiting.length < this.#closedAtOnce) this.#restsUntil = now + REST_MS;
  }

  /** Since when nothing of the response has been read; null if it was seen to move within a second, or is not blocked. */
  #unreadSince(socket: Socket, now: number): number | null {
    if (socket.writableLength === 0) return null;
    const sent = socket.bytesWritten - socket.writableLength;
    const seen = this.#unread.get(socket);
    if (seen?.sent === sent) return now - seen.since >= MIN_WAIT_MS ? seen.since : null;
    this.#unread.set(socket, { sent, since: now });
    return null;
  }
}
