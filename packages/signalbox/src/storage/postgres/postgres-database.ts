/**
 * The control plane's database on PostgreSQL.
 *
 * Invariants (beside those of the port):
 * 1. Write transactions take one advisory lock first, so they never interleave, whichever process they come from; that gives areas the
 *    same simple world as SQLite's single writer. Reads take no lock.
 * 2. Durability is the server's: a commit returns when its WAL is flushed (`synchronous_commit` is set to on for our sessions).
 * 3. One process at a time owns the database (a session-level advisory lock held on a connection of its own): several nodes on one
 *    database would serve stale tokens and settings to each other.
 */
import { createHash } from "node:crypto";
import { Client, Pool, type PoolClient, types } from "pg";
import { DataFolderError } from "../ports/data-folder-error.ts";
import type { Database, Queryable } from "../ports/database.ts";
import type { SqlQuery, SqlValue } from "../ports/sql.ts";

/** Arbitrary but fixed: every Signalbox must agree on them. */
const WRITE_LOCK = 0x5347_0001;
const OWNER_LOCK = 0x5347_0002;
const POOL_SIZE = 10;

export class PostgresDatabase implements Database {
  readonly engine = "postgres";
  readonly #pool: Pool;
  readonly #owner: Client;

  private constructor(pool: Pool, owner: Client) {
    this.#pool = pool;
    this.#owner = owner;
  }

  /** `onLost` must end the process: without the owner lock another node may have taken over. */
  static async open(url: string, onLost: (error: Error) => void): Promise<PostgresDatabase> {
    const owner = new Client({ connectionString: url, application_name: "signalbox owner" });
    try {
      await owner.connect();
    } catch (cause) {
      throw new DataFolderError(`cannot connect to PostgreSQL: ${reason(cause)}`, { cause });
    }
    const { rows } = await owner.query<{ taken: boolean }>("SELECT pg_try_advisory_lock($1) AS taken", [
      OWNER_LOCK,
    ]);
    if (rows[0]?.taken !== true) {
      await owner.end();
      throw new DataFolderError("the PostgreSQL database is in use by another Signalbox process");
    }
    owner.on("error", (cause) =>
      onLost(new Error("the connection that owns the database was lost", { cause })),
    );
    const pool = new Pool({
      connectionString: url,
      max: POOL_SIZE,
      application_name: "signalbox",
      options: "-c synchronous_commit=on",
      types: {
        getTypeParser: (oid, format) =>
          oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
      },
    });
    // A pooled connection may break while idle; the next query opens another, and a query in flight fails by itself.
    pool.on("error", () => undefined);
    return new PostgresDatabase(pool, owner);
  }

  async all<Row>(query: SqlQuery): Promise<Row[]> {
    return (await this.#pool.query(toStatement(query))).rows as Row[];
  }

  async get<Row>(query: SqlQuery): Promise<Row | undefined> {
    return (await this.all<Row>(query))[0];
  }

  run(query: SqlQuery): Promise<{ changes: number }> {
    return this.transaction((tx) => tx.run(query));
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let isBroken = true;
    try {
      await client.query("BEGIN");
      try {
        await client.query("SELECT pg_advisory_xact_lock($1)", [WRITE_LOCK]);
        const result = await work(asQueryable(client));
        await client.query("COMMIT");
        isBroken = false;
        return result;
      } catch (error) {
        await client.query("ROLLBACK");
        isBroken = false;
        throw error;
      }
    } finally {
      // A connection whose transaction could not be ended must not go back to the pool.
      client.release(isBroken);
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
    await this.#owner.end();
  }
}

function asQueryable(client: PoolClient): Queryable {
  return {
    all: async <Row>(query: SqlQuery) => (await client.query(toStatement(query))).rows as Row[],
    get: async <Row>(query: SqlQuery) => (await client.query(toStatement(query))).rows[0] as Row | undefined,
    run: async (query) => ({ changes: (await client.query(toStatement(query))).rowCount ?? 0 }),
  };
}

interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values: SqlValue[];
}

const preparedTexts = new WeakMap<readonly string[], { readonly name: string; readonly text: string }>();

/** Statements of fixed call sites are prepared once per connection; composed ones are sent as they are. */
function toStatement(query: SqlQuery): Statement {
  const values = query.values as SqlValue[];
  if (!Object.isFrozen(query.parts)) return { text: toText(query.parts), values };
  let prepared = preparedTexts.get(query.parts);
  if (prepared === undefined) {
    const text = toText(query.parts);
    prepared = { text, name: createHash("sha256").update(text).digest("base64url").slice(0, 32) };
    preparedTexts.set(query.parts, prepared);
  }
  return { ...prepared, values };
}

function toText(parts: readonly string[]): string {
  return parts.reduce((text, part, i) => (i === 0 ? part : `${text}$${i}${part}`), "");
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
