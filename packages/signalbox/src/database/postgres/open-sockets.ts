/**
 * The sockets of a group of connections, which can be destroyed together. The driver itself can only close a connection with a message to the
 * server, and waits for a server that hangs.
 */
import { Socket } from "node:net";

export class OpenSockets {
  readonly #open = new Set<Socket>();

  /** Creates a socket for the driver, which connects it. */
  readonly create = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    // The driver has its own listener and fails the running query.
    socket.on("error", () => undefined);
    socket.once("close", () => this.#open.delete(socket));
    return socket;
  };

  /** Running queries fail as if the connections broke. */
  destroyAll(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
