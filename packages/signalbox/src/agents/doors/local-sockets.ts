/** The sockets of a process that is alone: each joins its instance, which is here. */
import type { LocalSocket } from "../../engines/http-server/index.ts";
import type { ConnectionContext } from "../api/connection.ts";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import { type AcceptedSocket, ConnectionInbox, type InboxParts } from "./connection-inbox.ts";
import type { SocketRouter } from "./websocket-door.ts";

export class LocalSockets implements SocketRouter {
  readonly #parts: InboxParts;

  constructor(parts: InboxParts) {
    this.#parts = parts;
  }

  join(accepted: AcceptedSocket, socket: LocalSocket, context: ConnectionContext): ConnectionInbox {
    const inbox = new ConnectionInbox(this.#parts, accepted, socket);
    inbox.join(context);
    return inbox;
  }

  onArrival(ref: InstanceRef, callback: () => void): () => void {
    return this.#parts.directory.onArrival(keyOf(ref), callback);
  }
}
