/**
 * Connections to one store, to a server that accepts writes.
 *
 * Invariants:
 * 1. Statements end after ten seconds, so that none survives the minute for which records are kept (invariant 7 of `ownership.ts`).
 * 2. A commit that did not wait for a synchronous standby is not confirmed: PostgreSQL reports success and a warning if the wait is cancelled.
 * 3. A transaction whose client is silent ends after two seconds, and its locks with it: a node that stops in the middle of a snapshot or a claim
 *    is declared dead later than that, so its locks delay no take-over.
 * 4. A connection that failed in any way but an error of the statement is not used again.
 */
import { Client, types } from "pg";

const CONNECT_TIMEOUT_MS = 3000;
/** The server ends the statement first. */
const QUERY_TIMEOUT_MS = 15_000;
/** For claims, restores and snapshots. */
const MAX_CONNECTIONS = 4;
const END_TIMEOUT_MS = 1000;

/**
 * One statement writes the records of many instances, and its cost must not depend on what the planner believes about the size of arrays: a plan
 * is made once, and rows are found by their keys.
 */
const SETUP = `SET synchronous_commit = on; SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '2s';
  SET plan_cache_mode = force_generic_plan; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET jit = off`;

/** warning, and admin_shutdown: the wait for a standby was cancelled. The texts depend on the language of the server. */
const CANCELLED_WAITS: ReadonlySet<string | undefined> = new Set(["01000", "57P01"]);

export interface StoreClient {
  readonly client: Client;
  /** Reports whether a wait for a standby was cancelled since the last call. */
  takeWarning(): boolean;
  isBroken: boolean;
}

export class StoreConnections {
  readonly #urls: readonly string[];
  #index = 0;
  readonly #idle: StoreClient[] = [];
  #count = 0;
  readonly #waiting: (() => void)[] = [];
  #isClosed = false;
  readonly #open = new Set<StoreClient>();

  /** One of the servers is the primary. */
  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  /** A connection of its own; the caller ends it. */
  async open(): Promise<StoreClient> {
    const client = new Client({
      connectionString: this.#urls[this.#index % this.#urls.length],
      application_name: "signalbox instances",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      types: {
        getTypeParser: (oid, format) =>
          oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
      },
    });
    let hasWarning = false;
    const opened: StoreClient = {
      client,
      isBroken: false,
      takeWarning: () => {
        const had = hasWarning;
        hasWarning = false;
        return had;
      },
    };
    // Without a listener an error would be an uncaught exception. The running query reports it.
    client.on("error", () => (opened.isBroken = true));
    client.on("notice", ({ code }) => {
      if (CANCELLED_WAITS.has(code)) hasWarning = true;
    });
    try {
      await client.connect();
      await client.query(SETUP);
      await requirePrimary(client);
    } catch (error) {
      this.#index += 1;
      // The caller gets the first error.
      void client.end().catch(() => undefined);
      throw error;
    }
    this.#open.add(opened);
    return opened;
  }

  /** Runs `work` on a connection of the pool, and rolls back what it left open. */
  async use<T>(work: (client: StoreClient) => Promise<T>): Promise<T> {
    const connection = await this.#take();
    try {
      return await work(connection);
    } catch (error) {
      if (isStatementError(error))
        await connection.client.query("ROLLBACK").catch(() => (connection.isBroken = true));
      else connection.isBroken = true;
      throw error;
    } finally {
      this.#give(connection);
    }
  }

  async end(connection: StoreClient): Promise<void> {
    this.#open.delete(connection);
    const timeout = new Promise((resolve) => setTimeout(resolve, END_TIMEOUT_MS).unref());
    // The connection was already broken; the server ends the session.
    await Promise.race([connection.client.end().catch(() => undefined), timeout]);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const wake of this.#waiting.splice(0)) wake();
    await Promise.all([...this.#open].map((connection) => this.end(connection)));
  }

  async #take(): Promise<StoreClient> {
    for (;;) {
      if (this.#isClosed) throw new Error("the store is closed");
      const idle = this.#idle.pop();
      if (idle !== undefined && !idle.isBroken) return idle;
      if (idle !== undefined) this.#discard(idle);
      if (this.#count < MAX_CONNECTIONS) break;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#count += 1;
    try {
      return await this.open();
    } catch (error) {
      this.#count -= 1;
      this.#waiting.shift()?.();
      throw error;
    }
  }

  #give(connection: StoreClient): void {
    if (connection.isBroken || this.#isClosed) this.#discard(connection);
    else this.#idle.push(connection);
    this.#waiting.shift()?.();
  }

  #discard(connection: StoreClient): void {
    this.#count -= 1;
    void this.end(connection);
  }
}

/** True if the server has answered with an error of the statement: the transaction is rolled back. After any other error the outcome is unknown. */
export function isStatementError(error: unknown): boolean {
  return (error as { readonly severity?: unknown }).severity === "ERROR";
}

async function requirePrimary(client: Client): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>("SHOW transaction_read_only");
  if (rows[0]?.transaction_read_only === "off") return;
  throw Object.assign(new Error("the server is a standby"), { code: "25006" });
}
