/**
 * The control plane's database on PostgreSQL.
 *
 * Invariants (in addition to those of `Database`):
 * 1. Only one process writes (`Ownership`). Transactions of one scope are therefore serialised in this process, before they take a connection:
 *    waiting transactions use no connection and hold no lock. Every write transaction checks in the server that the process is still the owner.
 * 2. A commit returns after the server has flushed its WAL (`synchronous_commit` is on in all sessions).
 * 3. Only operations without effect are retried: reads, and the start of a transaction. A transaction that fails before COMMIT has no effect. If
 *    the connection breaks during COMMIT, the server is queried for the outcome (`write-marks.ts`). `write_outcome_unknown` is thrown only if
 *    the server does not respond in time.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { SignalboxError } from "@signalbox/protocol";
import type { Pool, PoolClient, QueryResult } from "pg";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { fullJitterDelay } from "../../core/retry.ts";
import { rawSql, type SqlQuery } from "../../core/sql.ts";
import type { Database, Queryable, TransactionOptions } from "../database.ts";
import { OpenSockets } from "./open-sockets.ts";
import { beginWrite, Ownership } from "./ownership.ts";
import { isServerError, isUnavailable, problemOf, toClientError } from "./postgres-failure.ts";
import { asQueryable, createPool, rollBack } from "./postgres-pool.ts";
import { toStatement } from "./statement.ts";
import { readOutcome, type WriteMark, WriteMarks } from "./write-marks.ts";

/** How long reads and writes wait for an unavailable server: a restart causes no error, and clients receive a response in time. */
const MAX_WAIT_MS = 5000;
/** How long a writer waits for the outcome of its commit. */
const MAX_OUTCOME_WAIT_MS = 10_000;
const RETRY = { baseDelayMs: 50, maxDelayMs: 500 };
/** Interval of test writes while the server cannot write. */
const PROBE_MS = 1000;
/** Writes a row without changing it. */
const PROBE = rawSql("UPDATE signalbox_owner SET epoch = epoch");
/**
 * Time limit of a statement, unless `mayTakeLong` is set. It detects a single session that hangs; `Ownership` detects a server that hangs
 * much earlier.
 */
const MAX_STATEMENT_MS = 60_000;
/** Time limit for closing the connections. */
const END_TIMEOUT_MS = 2000;

export interface PostgresDatabaseOptions {
  readonly maxWaitMs?: number;
  readonly maxOutcomeWaitMs?: number;
  readonly maxStatementMs?: number;
  /** Called once if the server cannot be reached at the start, before the wait. */
  readonly onWait?: (error: Error) => void;
  readonly startWaitMs?: number;
  readonly heartbeatMs?: number;
}

interface PostgresParts {
  readonly pool: Pool;
  readonly sockets: OpenSockets;
  readonly ownership: Ownership;
  readonly onLost: (error: Error) => void;
}

export class PostgresDatabase implements Database {
  readonly engine = "postgres";
  readonly #pool: Pool;
  readonly #sockets: OpenSockets;
  readonly #ownership: Ownership;
  readonly #onLost: (error: Error) => void;
  readonly #maxWaitMs: number;
  readonly #maxOutcomeWaitMs: number;
  readonly #marks: WriteMarks;
  /** By scope: the end of its last transaction. */
  readonly #scopes = new Map<string, Promise<void>>();
  #problem: string | null = null;
  #probing: Repetition | null = null;
  #closed: Promise<void> | null = null;

  /** `onLost` must end the process: another process owns the database, or the data in memory is out of date. */
  static async open(
    url: string,
    onLost: (error: Error) => void,
    options: PostgresDatabaseOptions = {},
  ): Promise<PostgresDatabase> {
    const { onWait, startWaitMs, heartbeatMs, maxStatementMs = MAX_STATEMENT_MS } = options;
    const sockets = new OpenSockets();
    const ownership = await Ownership.take({
      url,
      onTakenOver: onLost,
      onUnresponsive: () => sockets.destroyAll(),
      onWait,
      startWaitMs,
      heartbeatMs,
    });
    const pool = createPool(url, sockets, maxStatementMs);
    return new PostgresDatabase({ pool, sockets, ownership, onLost }, options);
  }

  private constructor(parts: PostgresParts, options: PostgresDatabaseOptions) {
    this.#pool = parts.pool;
    this.#sockets = parts.sockets;
    this.#ownership = parts.ownership;
    this.#onLost = parts.onLost;
    this.#marks = new WriteMarks(parts.ownership.epoch);
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
    const previous = this.#scopes.get(scope);
    const end = Promise.withResolvers<void>();
    this.#scopes.set(scope, end.promise);
    try {
      await previous;
      return await this.#runTransaction((client) => work(asQueryable(client, mayTakeLong)), deadline);
    } finally {
      if (this.#scopes.get(scope) === end.promise) this.#scopes.delete(scope);
      end.resolve();
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await this.#probing?.stop();
    await this.#ownership.close();
    setTimeout(() => this.#sockets.destroyAll(), END_TIMEOUT_MS).unref();
    await this.#pool.end();
  }

  async #runTransaction<T>(work: (client: PoolClient) => Promise<T>, deadline: number): Promise<T> {
    const mark = this.#marks.take();
    if (mark === null) throw this.#fail(new OwnerSessionError());
    try {
      const result = await this.#runMarked(work, deadline, mark);
      this.#marks.release(mark);
      return result;
    } catch (error) {
      // If the outcome is unknown, `#settle` still needs the mark.
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
      // A server that did not respond would not respond to ROLLBACK either.
      if (isUnavailable(error)) client.release(true);
      else await rollBack(client);
      throw this.#fail(error);
    }
    await this.#commit(client, mark);
    if (this.#problem !== null) this.#recover();
    return result;
  }

  async #begin(deadline: number, mark: WriteMark): Promise<PoolClient> {
    for (let attempt = 1; ; attempt++) {
      // The deadline includes the wait for earlier transactions: if the server is unavailable, all waiting transactions fail together.
      const isLast = performance.now() >= deadline;
      if (isLast && this.problem !== null) throw this.#fail(new OwnerSessionError());
      try {
        if (this.#ownership.isHeld) return await this.#tryToBegin(mark);
        if (isLast) throw new OwnerSessionError();
      } catch (error) {
        if (isLast || !isUnavailable(error)) throw this.#fail(error);
      }
      await sleep(fullJitterDelay(attempt, RETRY));
    }
  }

  async #tryToBegin(mark: WriteMark): Promise<PoolClient> {
    const client = await this.#pool.connect();
    try {
      // The driver returns one result per statement of the text.
      const results = (await client.query(beginWrite(mark))) as unknown as QueryResult<{ epoch: string }>[];
      if (!this.#ownership.isEpoch(results.at(-1)?.rows[0]?.epoch)) {
        this.#ownership.reportTakeover();
        throw new OwnerSessionError();
      }
      return client;
    } catch (error) {
      // The connection may have an open transaction.
      client.release(true);
      throw error;
    }
  }

  async #commit(client: PoolClient, mark: WriteMark): Promise<void> {
    try {
      const { command } = await client.query("COMMIT");
      client.release();
      // The server rolls back if an earlier statement failed and the callback ignored the error.
      if (command === "ROLLBACK") throw new RolledBackError();
    } catch (error) {
      if (error instanceof RolledBackError) throw error;
      if (isServerError(error)) {
        await rollBack(client);
        throw this.#fail(error);
      }
      client.release(true);
      if (!(await this.#hasCommitted(mark))) throw this.#fail(error);
    }
  }

  /** Throws `write_outcome_unknown` if the server does not report the outcome in time. */
  async #hasCommitted(mark: WriteMark): Promise<boolean> {
    const deadline = performance.now() + this.#maxOutcomeWaitMs;
    for (let attempt = 1; performance.now() < deadline; attempt++) {
      const outcome = await readOutcome(this.#pool, mark);
      if (outcome !== "pending") return outcome === "committed";
      await sleep(fullJitterDelay(attempt, RETRY));
    }
    this.#settle(mark).catch((error: unknown) => this.#onLost(error as Error));
    throw new SignalboxError("write_outcome_unknown");
  }

  /** Waits for the outcome. Throws if the write was committed: the data in memory does not include it, so the process must be restarted. */
  async #settle(mark: WriteMark): Promise<void> {
    let outcome = await readOutcome(this.#pool, mark);
    while (outcome === "pending" && this.#closed === null) {
      await sleep(PROBE_MS, undefined, { ref: false });
      outcome = await readOutcome(this.#pool, mark);
    }
    this.#marks.release(mark);
    if (outcome === "committed" && this.#closed === null)
      throw new Error(
        "a write with unknown outcome was committed after its caller received an error; the data in memory is out of date",
      );
  }

  async #read(query: SqlQuery): Promise<QueryResult> {
    const statement = toStatement(query);
    const deadline = performance.now() + this.#maxWaitMs;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pool.query(statement);
      } catch (error) {
        if (!isUnavailable(error) || performance.now() >= deadline) throw this.#fail(error);
      }
      await sleep(fullJitterDelay(attempt, RETRY));
    }
  }

  /** Records the problem, which lasts until a write succeeds, and returns the error for the caller. */
  #fail(error: unknown): unknown {
    if (isUnavailable(error)) {
      this.#problem = problemOf(error);
      // Detects the recovery even if clients write nothing. The failure of a probe is recorded like that of any write.
      this.#probing ??= repeat(
        PROBE_MS,
        async () => void (await this.run(PROBE)),
        () => undefined,
      );
    }
    return toClientError(error);
  }

  #recover(): void {
    this.#problem = null;
    // Not awaited: the probe itself may be the caller.
    void this.#probing?.stop();
    this.#probing = null;
  }
}

/** The owner session is lost: the server is unavailable, or another process may own the database. No writes until the session is restored. */
class OwnerSessionError extends Error {
  readonly code = "08006";

  constructor() {
    super("the session that owns the database is lost");
  }
}

class RolledBackError extends Error {
  constructor() {
    super("the transaction was rolled back because one of its statements failed");
  }
}
