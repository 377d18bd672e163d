/**
 * The sockets of a group of connections, so that all of them can be cut off at once. The driver has no way to do so: it waits for what the server
 * says, and a server that hangs says nothing.
 */
import { Socket } from "node:net";

export class OpenSockets {
  readonly #open = new Set<Socket>();

  /** For the driver, which connects it. */
  readonly create = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    // The driver hears of it, too, and fails what is under way.
    socket.on("error", () => undefined);
    socket.once("close", () => this.#open.delete(socket));
    return socket;
  };

  /** Queries under way fail as with any connection that breaks. */
  cutOff(): void {
    for (const socket of this.#open) socket.destroy();
  }
}
