/**
 * Connections whose other side has not proved yet that it is a node. Their number is bounded: one more closes the oldest one, so strangers
 * that hold connections open cannot keep a node out, whose handshake takes two round trips.
 */
import type { Socket } from "node:net";

export const MAX_NEWCOMERS = 64;

export class Newcomers {
  readonly #sockets = new Set<Socket>();

  get size(): number {
    return this.#sockets.size;
  }

  add(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    if (this.#sockets.size <= MAX_NEWCOMERS) return;
    const [oldest] = this.#sockets;
    if (oldest !== undefined) this.#close(oldest);
  }

  /** The other side is known now, or its connection has ended. */
  remove(socket: Socket): void {
    this.#sockets.delete(socket);
  }

  /** By address, for a socket that was wrapped meanwhile. */
  removePeer({ remoteAddress, remotePort }: Socket): void {
    for (const socket of this.#sockets) {
      if (socket.remotePort === remotePort && socket.remoteAddress === remoteAddress)
        this.#sockets.delete(socket);
    }
  }

  closeAll(): void {
    for (const socket of this.#sockets) this.#close(socket);
  }

  #close(socket: Socket): void {
    this.#sockets.delete(socket);
    socket.on("error", () => undefined);
    socket.destroy();
  }
}
