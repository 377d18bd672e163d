/** The connections of a node's session: one at a time, to a server that accepts writes. */
import type { Client } from "pg";
import { connectPrimary, endClient, type Servers } from "../../engines/postgres-session/index.ts";
import { OpenSockets } from "./open-sockets.ts";

/** Longer than a heartbeat may take (`node-session.ts`), which ends the connection. */
const SESSION = { name: "signalbox node", statementMs: 10_000 };

export class NodeConnections {
  readonly #servers: Servers;
  readonly #sockets = new OpenSockets();

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  open(): Promise<Client> {
    return connectPrimary(this.#servers, SESSION, this.#sockets.create);
  }

  end(client: Client): Promise<void> {
    return endClient(client);
  }

  /** Running queries fail as if the connection broke. */
  destroyAll(): void {
    this.#sockets.destroyAll();
  }
}
