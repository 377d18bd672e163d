/** The connections of a TLS server whose handshake has not ended. */
import type { Server, Socket } from "node:net";
import type { OpenConnection } from "./connection-room.ts";

export class TlsHandshakes {
  /** By the address of the client: the socket that is secured is another object than the one that was accepted. */
  readonly #pending = new Map<string, OpenConnection>();

  constructor(server: Server) {
    server.on("connection", (socket: Socket) => {
      const client = clientOf(socket);
      this.#pending.set(client, { socket, waitingSince: performance.now() });
      socket.once("close", () => this.#pending.delete(client));
    });
    server.on("secureConnection", (socket: Socket) => this.#pending.delete(clientOf(socket)));
  }

  all(): OpenConnection[] {
    return [...this.#pending.values()];
  }
}

function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
