/** The connection pool, and a transaction's connection as a `Queryable`. */
import { Client, type ClientConfig, Pool, type PoolClient, type QueryResult } from "pg";
import type { SqlQuery } from "../../core/sql.ts";
import { type Servers, sessionConfig } from "../../engines/postgres-session/index.ts";
import type { Queryable } from "../database.ts";
import type { OpenSockets } from "./open-sockets.ts";
import { toStatement } from "./statement.ts";

export const POOL_SIZE = 10;
const CONNECT_TIMEOUT_MS = 3000;
/** The maximum delay of a timer. */
const NO_LIMIT_MS = 2 ** 31 - 1;

export function createPool(servers: Servers, sockets: OpenSockets, maxStatementMs: number): Pool {
  const pool = new Pool({
    // New connections go to the server that is the primary at that time.
    Client: class extends Client {
      constructor(config?: ClientConfig) {
        super({ ...config, connectionString: servers.current });
      }
    },
    ...sessionConfig({ name: "signalbox", statementMs: maxStatementMs }),
    max: POOL_SIZE,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    stream: sockets.create,
  });
  // An idle connection broke. The next query opens another one.
  pool.on("error", () => undefined);
  // The pool listens for errors of idle connections only. A connection that breaks between two statements of a transaction would cause an
  // uncaught exception; the next statement reports the error.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  return pool;
}

/** Rolls back and returns the connection to the pool, or closes it if the rollback fails. Never throws: the caller has an error to report. */
export async function rollBack(client: PoolClient): Promise<void> {
  try {
    await client.query("ROLLBACK");
    client.release();
  } catch {
    client.release(true);
  }
}

/** The driver accepts a time limit per statement, which is missing from its types. */
export function withoutLimit<T extends object>(statement: T): T {
  return { ...statement, query_timeout: NO_LIMIT_MS };
}

export function asQueryable(client: Pick<Client, "query">, mayTakeLong: boolean): Queryable {
  const query = (text: SqlQuery): Promise<QueryResult> => {
    const statement = toStatement(text);
    return client.query(mayTakeLong ? withoutLimit(statement) : statement);
  };
  return {
    all: async <Row>(text: SqlQuery) => (await query(text)).rows as Row[],
    get: async <Row>(text: SqlQuery) => (await query(text)).rows[0] as Row | undefined,
    run: async (text) => ({ changes: (await query(text)).rowCount ?? 0 }),
  };
}
