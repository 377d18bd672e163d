/** The connections of a node's session: one at a time, to a server that accepts writes. */
import { Client } from "pg";
import { OpenSockets } from "./open-sockets.ts";
import type { Servers } from "./servers.ts";

const CONNECT_TIMEOUT_MS = 5000;
const QUERY_TIMEOUT_MS = 10_000;
/** Time limit for closing a connection. */
const END_TIMEOUT_MS = 2000;
const SESSION_OPTIONS =
  "-c synchronous_commit=on -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";

export class NodeConnections {
  readonly #servers: Servers;
  readonly #sockets = new OpenSockets();

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  async open(): Promise<Client> {
    const client = new Client({
      connectionString: this.#servers.current,
      application_name: "signalbox node",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      stream: this.#sockets.create,
      options: SESSION_OPTIONS,
    });
    // Without a listener an error would be an uncaught exception. The running query reports it.
    client.on("error", () => undefined);
    await client.connect();
    try {
      if (this.#servers.count > 1) await requirePrimary(client);
    } catch (error) {
      await this.end(client);
      throw error;
    }
    return client;
  }

  async end(client: Client): Promise<void> {
    const timer = setTimeout(() => this.#sockets.destroyAll(), END_TIMEOUT_MS);
    // The connection was already broken; the server ends the session.
    await client.end().catch(() => undefined);
    clearTimeout(timer);
  }

  /** Running queries fail as if the connection broke. */
  destroyAll(): void {
    this.#sockets.destroyAll();
  }
}

/** A standby accepts connections but no writes. */
async function requirePrimary(client: Client): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>("SHOW transaction_read_only");
  if (rows[0]?.transaction_read_only === "off") return;
  throw Object.assign(new Error("the server is a standby"), { code: "25006" });
}
