/**
 * The control plane's database on PostgreSQL.
 *
 * Invariants (beside those of the port):
 * 1. One process writes (`Ownership`), so transactions of one scope are kept apart in this process, before they take a connection: those that
 *    wait hold nothing that others need. Every write transaction makes sure, in the server, that the process still is the owner.
 * 2. Durability is the server's: a commit returns when its WAL is flushed (`synchronous_commit` is set to on for our sessions).
 * 3. What is tried again is only what cannot have had an effect: reads, and beginning a transaction. A transaction that breaks before
 *    COMMIT has left nothing and fails. If the connection breaks while it commits, the server is asked what became of it; the answer
 *    that it is unknown is given only when the server does not come back in time.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SignalboxError } from "@signalbox/protocol";
import { Pool, type PoolClient, type QueryResult, types } from "pg";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { fullJitterDelay } from "../../core/retry.ts";
import type { Database, Queryable, TransactionOptions } from "../database.ts";
import { rawSql, type SqlQuery } from "../../core/sql.ts";
import { OpenSockets } from "./open-sockets.ts";
import { beginWrite, Ownership } from "./ownership.ts";
import { explainFailure, isPlainRefusal, isUnavailable, problemOf } from "./postgres-failure.ts";
import { toStatement } from "./statement.ts";
import { readOutcome, type WriteMark, WriteMarks } from "./write-marks.ts";

const POOL_SIZE = 10;
/** How long reads and writes wait for a server that is away: a restart passes unseen, and senders still get an answer. */
const MAX_WAIT_MS = 5000;
/** How long a writer waits to learn what became of its commit. */
const MAX_OUTCOME_WAIT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 3000;
const RETRY = { baseDelayMs: 50, maxDelayMs: 500 };
/** How often a server that has no room or no connection left is looked at again. */
const PROBE_MS = 1000;
/** Writes one row without changing anything. */
const PROBE = rawSql("UPDATE signalbox_owner SET epoch = epoch");
/** A transaction that the process has forgotten, say over a lost connection, must not hold its locks for ever. */
const SESSION = "-c synchronous_commit=on -c idle_in_transaction_session_timeout=30000";

/**
 * How long one statement may take. A server that hangs is noticed long before (`Ownership`); this is for a single session that does. Statements that
 * may take longer say so.
 */
const MAX_STATEMENT_MS = 60_000;
/** As long as a timer can wait. */
const NO_LIMIT_MS = 2 ** 31 - 1;
/** For saying goodbye to a server that may not be listening. */
const END_TIMEOUT_MS = 2000;

export interface PostgresDatabaseOptions {
  readonly maxWaitMs?: number;
  readonly maxOutcomeWaitMs?: number;
  readonly maxStatementMs?: number;
  /** At the start, once: the server cannot be reached, and is waited for. */
  readonly onWait?: (error: Error) => void;
  readonly startWaitMs?: number;
  readonly beatMs?: number;
}

export class PostgresDatabase implements Database {
  readonly engine = "postgres";
  readonly #pool: Pool;
  readonly #sockets: OpenSockets;
  readonly #ownership: Ownership;
  readonly #onLost: (error: Error) => void;
  readonly #maxWaitMs: number;
  readonly #maxOutcomeWaitMs: number;
  /** The last transaction of each scope that has any. */
  readonly #marks: WriteMarks;
  readonly #scopes = new Map<string, Promise<void>>();
  #problem: string | null = null;
  #probing: Repetition | null = null;
  #closed: Promise<void> | null = null;

  /** `onLost` must end the process: another one has the database, or memory no longer agrees with it. Tests have less time to wait. */
  static async open(
    url: string,
    onLost: (error: Error) => void,
    options: PostgresDatabaseOptions = {},
  ): Promise<PostgresDatabase> {
    const { onWait, startWaitMs, beatMs, maxStatementMs = MAX_STATEMENT_MS } = options;
    const sockets = new OpenSockets();
    const ownership = await Ownership.take({
      url,
      onTakenOver: onLost,
      onSilence: () => sockets.cutOff(),
      onWait,
      startWaitMs,
      beatMs,
    });
    return new PostgresDatabase(
      createPool(url, sockets, maxStatementMs),
      sockets,
      ownership,
      onLost,
      options,
    );
  }

  private constructor(
    pool: Pool,
    sockets: OpenSockets,
    ownership: Ownership,
    onLost: (error: Error) => void,
    options: PostgresDatabaseOptions,
  ) {
    this.#pool = pool;
    this.#sockets = sockets;
    this.#ownership = ownership;
    this.#marks = new WriteMarks(ownership.epoch);
    this.#onLost = onLost;
    this.#maxWaitMs = options.maxWaitMs ?? MAX_WAIT_MS;
    this.#maxOutcomeWaitMs = options.maxOutcomeWaitMs ?? MAX_OUTCOME_WAIT_MS;
  }

  get problem(): string | null {
    return this.#ownership.isHeld ? this.#problem : "PostgreSQL cannot be reached";
  }

  async all<Row>(query: SqlQuery): Promise<Row[]> {
    return (await this.#read(query)).rows as Row[];
  }

  async get<Row>(query: SqlQuery): Promise<Row | undefined> {
    return (await this.#read(query)).rows[0] as Row | undefined;
  }

  run(query: SqlQuery): Promise<{ changes: number }> {
    return this.transaction((tx) => tx.run(query));
  }

  async transaction<T>(
    work: (tx: Queryable) => Promise<T>,
    { scope = "", mayTakeLong = false }: TransactionOptions = {},
  ): Promise<T> {
    const deadline = performance.now() + this.#maxWaitMs;
    const before = this.#scopes.get(scope);
    const turn = Promise.withResolvers<void>();
    this.#scopes.set(scope, turn.promise);
    try {
      await before;
      return await this.#runTransaction((client) => work(asQueryable(client, mayTakeLong)), deadline);
    } finally {
      if (this.#scopes.get(scope) === turn.promise) this.#scopes.delete(scope);
      turn.resolve();
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await this.#probing?.stop();
    await this.#ownership.close();
    setTimeout(() => this.#sockets.cutOff(), END_TIMEOUT_MS).unref();
    await this.#pool.end();
  }

  async #runTransaction<T>(work: (client: PoolClient) => Promise<T>, deadline: number): Promise<T> {
    const mark = this.#marks.take();
    if (mark === null) throw this.#explain(new UnreachableError());
    try {
      const result = await this.#runMarked(work, deadline, mark);
      this.#marks.release(mark);
      return result;
    } catch (error) {
      // Of an unknown outcome, the mark is the only witness.
      if (!(error instanceof SignalboxError && error.id === "write_outcome_unknown"))
        this.#marks.release(mark);
      throw error;
    }
  }

  async #runMarked<T>(
    work: (client: PoolClient) => Promise<T>,
    deadline: number,
    mark: WriteMark,
  ): Promise<T> {
    const client = await this.#begin(deadline, mark);
    let result: T;
    try {
      result = await work(client);
    } catch (error) {
      // Of a server that did not answer, nothing more is asked.
      if (isUnavailable(error)) client.release(true);
      else await rollBack(client);
      throw this.#explain(error);
    }
    await this.#commit(client, mark);
    if (this.#problem !== null) this.#recover();
    return result;
  }

  async #begin(deadline: number, mark: WriteMark): Promise<PoolClient> {
    for (let attempt = 1; ; attempt++) {
      // Time that has passed in line counts: when a server is away, everybody behind the first is told at once.
      const isLast = performance.now() >= deadline;
      if (isLast && this.problem !== null) throw this.#explain(new UnreachableError());
      try {
        if (this.#ownership.isHeld) return await this.#tryToBegin(mark);
        if (isLast) throw new UnreachableError();
      } catch (error) {
        if (isLast || !isUnavailable(error)) throw this.#explain(error);
      }
      await sleep(fullJitterDelay(attempt, RETRY));
    }
  }

  async #tryToBegin(mark: WriteMark): Promise<PoolClient> {
    const client = await this.#pool.connect();
    try {
      // The driver gives one result for each statement of the text.
      const results = (await client.query(beginWrite(mark))) as unknown as QueryResult<{ epoch: string }>[];
      if (!this.#ownership.isEpoch(results.at(-1)?.rows[0]?.epoch)) {
        this.#ownership.takenOver();
        throw new UnreachableError();
      }
      return client;
    } catch (error) {
      // Its transaction may be open.
      client.release(true);
      throw error;
    }
  }

  async #commit(client: PoolClient, mark: WriteMark): Promise<void> {
    try {
      const { command } = await client.query("COMMIT");
      client.release();
      // The server's way to say that a statement had failed before, and somebody did not care.
      if (command === "ROLLBACK") throw new RolledBackError();
    } catch (error) {
      if (error instanceof RolledBackError) throw error;
      if (isPlainRefusal(error)) {
        await rollBack(client);
        throw this.#explain(error);
      }
      client.release(true);
      if (!(await this.#hasCommitted(mark))) throw this.#explain(error);
    }
  }

  /** Throws `write_outcome_unknown` when the server does not say so in time. */
  async #hasCommitted(mark: WriteMark): Promise<boolean> {
    const deadline = performance.now() + this.#maxOutcomeWaitMs;
    for (let attempt = 1; performance.now() < deadline; attempt++) {
      const outcome = await readOutcome(this.#pool, mark);
      if (outcome !== "later") return outcome === "committed";
      await sleep(fullJitterDelay(attempt, RETRY));
    }
    this.#settle(mark).catch((error: unknown) => this.#onLost(error as Error));
    throw new SignalboxError("write_outcome_unknown");
  }

  /** A write that took place although its writer was told that nobody knows: memory was not brought up to date, and a new process must. */
  async #settle(mark: WriteMark): Promise<void> {
    let outcome = await readOutcome(this.#pool, mark);
    while (outcome === "later" && this.#closed === null) {
      await sleep(PROBE_MS, undefined, { ref: false });
      outcome = await readOutcome(this.#pool, mark);
    }
    this.#marks.release(mark);
    if (outcome === "committed" && this.#closed === null)
      throw new Error(
        "a write took place whose outcome was unknown for too long; what is in memory is out of date",
      );
  }

  async #read(query: SqlQuery): Promise<QueryResult> {
    const statement = toStatement(query);
    const deadline = performance.now() + this.#maxWaitMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pool.query(statement);
      } catch (error) {
        if (!isUnavailable(error) || performance.now() >= deadline) throw this.#explain(error);
      }
      await sleep(fullJitterDelay(attempt, RETRY));
    }
  }

  /** Also takes note of what is wrong, until a write succeeds. */
  #explain(error: unknown): unknown {
    if (isUnavailable(error)) {
      this.#problem = problemOf(error);
      // Writes of clients may stay away meanwhile. A probe that fails is noted as any write.
      this.#probing ??= repeat(
        PROBE_MS,
        async () => void (await this.run(PROBE)),
        () => undefined,
      );
    }
    return explainFailure(error);
  }

  #recover(): void {
    this.#problem = null;
    // Not waited for: the probe itself may be what got here.
    void this.#probing?.stop();
    this.#probing = null;
  }
}

/** The owner's session is gone, which means that the server is, or that nobody may write until it is known who owns the database. */
class UnreachableError extends Error {
  readonly code = "08006";

  constructor() {
    super("the session that owns the database is lost");
  }
}

class RolledBackError extends Error {
  constructor() {
    super("the transaction was rolled back, because one of its statements had failed");
  }
}

function createPool(url: string, sockets: OpenSockets, maxStatementMs: number): Pool {
  const pool = new Pool({
    connectionString: url,
    max: POOL_SIZE,
    application_name: "signalbox",
    options: SESSION,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: maxStatementMs,
    keepAlive: true,
    stream: sockets.create,
    types: {
      getTypeParser: (oid, format) =>
        oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format),
    },
  });
  // A pooled connection may break while idle; the next query opens another, and a query in flight fails by itself.
  pool.on("error", () => undefined);
  // The pool listens only while a connection is idle: one that breaks between two statements of a transaction would be an uncaught error.
  // The next statement fails.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  return pool;
}

/** Gives the connection back, or drops it when it cannot be rolled back: the failure that led here is the one to tell. */
async function rollBack(client: PoolClient): Promise<void> {
  try {
    await client.query("ROLLBACK");
    client.release();
  } catch {
    client.release(true);
  }
}

function asQueryable(client: PoolClient, mayTakeLong: boolean): Queryable {
  const query = (text: SqlQuery): Promise<QueryResult> => {
    const statement = toStatement(text);
    // The driver takes a limit for one statement, which its types do not know of.
    const unlimited = { ...statement, query_timeout: NO_LIMIT_MS };
    return client.query(mayTakeLong ? unlimited : statement);
  };
  return {
    all: async <Row>(text: SqlQuery) => (await query(text)).rows as Row[],
    get: async <Row>(text: SqlQuery) => (await query(text)).rows[0] as Row | undefined,
    run: async (text) => ({ changes: (await query(text)).rowCount ?? 0 }),
  };
}
