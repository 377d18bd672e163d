/**
 * Connections to one store, to a server that accepts writes.
 *
 * Invariants:
 * 1. Statements end after ten seconds, so that none survives the minute for which records are kept (invariant 7 of `ownership.ts`).
 * 2. A commit that did not wait for a synchronous standby is not confirmed: PostgreSQL reports success and a warning if the wait is cancelled.
 * 3. A transaction whose client is silent ends before the node is declared dead (`postgres-session`): a node that stops in the middle of a snapshot or a
 *    claim delays no take-over.
 * 4. A connection that failed in any way but an error of the statement is not used again.
 * 5. All connections lead to the server of the newest one. After a failover the former primary may live on for a while: a node that wrote its records there,
 *    and its snapshots to the new one, would mix two histories.
 */
import type { Client } from "pg";
import {
  connectPrimary,
  endClient,
  hasNoRoom,
  isStatementError,
  Servers,
} from "../../postgres-session/index.ts";

/** For claims, restores and snapshots. */
const MAX_CONNECTIONS = 4;

const SESSION = {
  name: "signalbox instances",
  statementMs: 10_000,
  // One statement writes the records of many instances, and its cost must not depend on what the planner believes about the size of arrays: a plan is
  // made once, and rows are found by their keys.
  settings: [
    "plan_cache_mode=force_generic_plan",
    "enable_hashjoin=off",
    "enable_mergejoin=off",
    "enable_seqscan=off",
    "jit=off",
  ],
};

/** warning, and admin_shutdown: the wait for a standby was cancelled. The texts depend on the language of the server. */
const CANCELLED_WAITS: ReadonlySet<string | undefined> = new Set(["01000", "57P01"]);

export interface StoreClient {
  readonly client: Client;
  /** Reports whether a wait for a standby was cancelled since the last call. */
  takeWarning(): boolean;
  isBroken: boolean;
}

export class StoreConnections {
  readonly #servers: Servers;
  /** When the server was started to which the newest connection leads. */
  #server = "";
  readonly #idle: StoreClient[] = [];
  #count = 0;
  readonly #waiting: PromiseWithResolvers<void>[] = [];
  #isClosed = false;
  readonly #open = new Set<StoreClient>();

  /** The connection string may name several servers. */
  constructor(url: string) {
    this.#servers = new Servers(url);
  }

  /** A connection of its own; the caller ends it. */
  async open(): Promise<StoreClient> {
    const client = await connectPrimary(this.#servers, SESSION);
    await this.#follow(client);
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
    client.on("error", () => (opened.isBroken = true));
    client.on("notice", ({ code }) => {
      if (CANCELLED_WAITS.has(code)) hasWarning = true;
    });
    this.#open.add(opened);
    return opened;
  }

  /** Running statements fail as if the connections broke: the answer of a server that is not the primary any more would mean nothing. */
  reconnect(): void {
    for (const connection of this.#open) {
      connection.isBroken = true;
      connection.client.connection.stream.destroy();
    }
  }

  /** A restarted server is another one, too. */
  async #follow(client: Client): Promise<void> {
    try {
      const { rows } = await client.query<{ server: string }>(
        "SELECT pg_postmaster_start_time()::text AS server",
      );
      const server = rows[0]?.server ?? "";
      if (server !== this.#server) this.reconnect();
      this.#server = server;
    } catch (error) {
      void endClient(client);
      throw error;
    }
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
    await endClient(connection.client);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
    await Promise.all([...this.#open].map((connection) => this.end(connection)));
  }

  async #take(): Promise<StoreClient> {
    for (;;) {
      if (this.#isClosed) throw new Error("the store is closed");
      const idle = this.#idle.pop();
      if (idle !== undefined && !idle.isBroken) return idle;
      if (idle !== undefined) this.#discard(idle);
      if (this.#count < MAX_CONNECTIONS) break;
      const free = Promise.withResolvers<void>();
      this.#waiting.push(free);
      await free.promise;
    }
    this.#count += 1;
    try {
      return await this.open();
    } catch (error) {
      this.#count -= 1;
      if (hasNoRoom(error)) this.#waiting.shift()?.resolve();
      // Those who wait would try in turn, and each attempt may take seconds.
      else for (const { reject } of this.#waiting.splice(0)) reject(error);
      throw error;
    }
  }

  #give(connection: StoreClient): void {
    if (connection.isBroken || this.#isClosed) this.#discard(connection);
    else this.#idle.push(connection);
    this.#waiting.shift()?.resolve();
  }

  #discard(connection: StoreClient): void {
    this.#count -= 1;
    void this.end(connection);
  }
}
