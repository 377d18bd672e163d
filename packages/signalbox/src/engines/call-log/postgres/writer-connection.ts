/**
 * The writer's connection to PostgreSQL, opened when it is needed and again after it was lost.
 *
 * A connection that was lost may live on in the server, in the middle of a transaction whose locks the next attempt needs. Connections have a
 * name of their own, and a new one ends the earlier ones.
 */
import { Client, types } from "pg";

/** A commit of a full batch takes about a second on a busy server. */
const QUERY_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 3000;
const END_TIMEOUT_MS = 1000;
const SESSION_OPTIONS = "-c synchronous_commit=on -c idle_in_transaction_session_timeout=30000";

export interface WriterConnectionOptions {
  /** One of them is the primary. */
  readonly urls: readonly string[];
  /** Different for every process. */
  readonly writerId: string;
  /** Of a statement. Default 10 s. */
  readonly queryTimeoutMs?: number;
}

export class WriterConnection {
  readonly #options: WriterConnectionOptions;
  #index = 0;
  #client: Client | null = null;

  constructor(options: WriterConnectionOptions) {
    this.#options = options;
  }

  /** The open connection, or a new one. */
  async get(): Promise<{ readonly client: Client; readonly isNew: boolean }> {
    if (this.#client !== null) return { client: this.#client, isNew: false };
    // After a pause of this process, a connection may seem to have taken too long although the server has answered.
    const client = await this.#connect().catch((error: unknown) => {
      if (error instanceof Error && /timeout/.test(error.message)) return this.#connect();
      throw error;
    });
    this.#client = client;
    return { client, isNew: true };
  }

  async #connect(): Promise<Client> {
    const { urls, writerId, queryTimeoutMs = QUERY_TIMEOUT_MS } = this.#options;
    const name = `signalbox calls ${writerId}`;
    const client = new Client({
      connectionString: urls[this.#index % urls.length],
      application_name: name,
      options: SESSION_OPTIONS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: queryTimeoutMs,
      keepAlive: true,
      types: {
        getTypeParser: (oid, format) =>
          oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
      },
    });
    // The next statement reports the error.
    client.on("error", () => this.#lost(client));
    try {
      await client.connect();
      await refuseStandby(client);
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()",
        [name],
      );
    } catch (error) {
      this.#index += 1;
      // The caller needs the first error.
      void client.end().catch(() => undefined);
      throw error;
    }
    return client;
  }

  /** Closes the connection without waiting: its state is unknown. */
  drop(): void {
    const client = this.#client;
    this.#client = null;
    // The failure that led here is reported by the caller.
    void client?.end().catch(() => undefined);
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    if (client === null) return;
    const timeout = new Promise((resolve) => setTimeout(resolve, END_TIMEOUT_MS).unref());
    // All rows are committed: an error while closing loses nothing.
    await Promise.race([client.end().catch(() => undefined), timeout]);
  }

  #lost(client: Client): void {
    if (this.#client === client) this.#client = null;
  }
}

async function refuseStandby(client: Client): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>("SELECT pg_is_in_recovery() AS standby");
  if (rows[0]?.standby === true) throw new Error("this PostgreSQL is a standby and accepts no writes");
}
