/**
 * The writer's connection to PostgreSQL, opened when it is needed and again after it was lost.
 *
 * A connection that was lost may live on in the server, in the middle of a transaction whose locks the next attempt needs. Connections have a
 * name of their own, and a new one ends the earlier ones.
 */
import type { Client } from "pg";
import { connectPrimary, endClient, Servers } from "../../postgres-session/index.ts";

/** A commit of a full batch takes about a second on a busy server. */
const STATEMENT_MS = 10_000;

export interface WriterConnectionOptions {
  /** May name several servers. */
  readonly url: string;
  /** Different for every process. */
  readonly writerId: string;
  /** Of a statement. Default 10 s. */
  readonly statementMs?: number;
  /** Further settings of the session, as `name=value`. */
  readonly settings?: readonly string[];
}

export class WriterConnection {
  readonly #options: WriterConnectionOptions;
  readonly #servers: Servers;
  #client: Client | null = null;

  constructor(options: WriterConnectionOptions) {
    this.#options = options;
    this.#servers = new Servers(options.url);
  }

  /** The open connection, or a new one. */
  async get(): Promise<{ readonly client: Client; readonly isNew: boolean }> {
    if (this.#client !== null) return { client: this.#client, isNew: false };
    const client = await this.#connect();
    this.#client = client;
    return { client, isNew: true };
  }

  async #connect(): Promise<Client> {
    const { writerId, statementMs = STATEMENT_MS, settings } = this.#options;
    const name = `signalbox calls ${writerId}`;
    const client = await connectPrimary(this.#servers, { name, statementMs, settings });
    // The next statement reports the error.
    client.on("error", () => this.#lost(client));
    try {
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()",
        [name],
      );
    } catch (error) {
      void endClient(client);
      throw error;
    }
    return client;
  }

  /** Closes the connection without waiting: its state is unknown. */
  drop(): void {
    const client = this.#client;
    this.#client = null;
    if (client !== null) void endClient(client);
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    // All rows are committed: an error while closing loses nothing.
    if (client !== null) await endClient(client);
  }

  #lost(client: Client): void {
    if (this.#client === client) this.#client = null;
  }
}
