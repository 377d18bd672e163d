/**
 * The control plane's database on PostgreSQL, shared by any number of nodes (`NodeSession`).
 *
 * Invariants (in addition to those of `Database`):
 * 1. Transactions of one scope are serialised in this process, before they take a connection: waiting transactions use no connection and hold no
 *    lock. In a cluster they then take the lock of their scope in the server, unless they are `isConcurrent`. There is no lock for all writes.
 *    Every write transaction checks in the server that this node was not declared dead.
 * 2. A commit returns after the server has flushed its WAL (`synchronous_commit` is on in all sessions).
 * 3. Only operations without effect are retried: reads, and transactions whose connection was lost before COMMIT, or whose COMMIT is known to have
 *    failed. If the connection breaks during COMMIT, the server is queried for the outcome (`commits.ts`). `write_outcome_unknown` is thrown only if
 *    the server does not respond in time.
 * 4. A transaction holds its locks for no longer than its process is awake: the server ends one whose client is silent (`postgres-session`). A
 *    process that was paused in the middle runs the transaction again.
 * 5. Nothing is read or written without a session: it knows which server is the primary.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool, PoolClient, QueryResult } from "pg";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { fullJitterDelay } from "../../core/retry.ts";
import { rawSql, type SqlQuery } from "../../core/sql.ts";
import {
  isConflict,
  isLocked,
  isLost,
  isUnavailable,
  Servers,
} from "../../engines/postgres-session/index.ts";
import type { Database, LabelledBlob, Queryable, ScanTurn, TransactionOptions } from "../database.ts";
import { ScanTurns } from "../scan-turns.ts";
import type { ClusterMembership, NodeIdentity } from "../membership.ts";
import { OpenSockets } from "./open-sockets.ts";
import { copyBlobs } from "./copy-blobs.ts";
import { readDurability, type ServerSetting } from "./durability.ts";
import { Commits } from "./commits.ts";
import { type LostCommits, NodeSession } from "./node-session.ts";
import type { VersionRange } from "./join-rules.ts";
import { beginWrite, DEFAULT_DEAD_AFTER_MS, scopeLock } from "./node-table.ts";
import { problemOf, toClientError } from "./postgres-failure.ts";
import { asQueryable, createPool, rollBack, withoutLimit } from "./postgres-pool.ts";
import { toStatement } from "./statement.ts";
import { writeMark, type WriteMark, WriteMarks } from "./write-marks.ts";

/** How long reads and writes wait for an unavailable server: a restart causes no error, and clients receive a response in time. */
const MAX_WAIT_MS = 5000;
const RETRY = { baseDelayMs: 50, maxDelayMs: 500 };
/** How often a transaction is run if another one is in its way, or if its connection is lost. */
const MAX_ATTEMPTS = 5;
/** How often a lock is waited for, 2.5 s each time. */
const MAX_LOCK_WAITS = 2;
/** Interval of test writes while the server cannot write. */
const PROBE_MS = 1000;
const LIVING_NODES = rawSql("SELECT inc::text AS inc FROM signalbox_node WHERE state <> 'dead'");
/** Writes a row without changing it. */
const PROBE = rawSql("UPDATE signalbox_cluster SET cluster = cluster");
/**
 * Time limit of a statement, unless `mayTakeLong` is set. It detects a single session that hangs; `NodeSession` detects a server that hangs
 * much earlier.
 */
const MAX_STATEMENT_MS = 60_000;
/** Time limit for closing the connections. */
const END_TIMEOUT_MS = 2000;

/** What a node of a cluster needs; without it the process uses the database alone. */
export interface ClusterOptions extends Pick<
  ClusterMembership,
  "secretCheck" | "shared" | "openAddress" | "onMembers"
> {
  readonly linkVersions: VersionRange;
  readonly onSettingsVersion?: (version: number, sentAt: number) => void;
  readonly onSettingsRead?: (version: number, sentAt: number) => void;
  /** This node was declared dead, and has not joined again yet. */
  readonly onDead?: () => void;
  /** The server was restarted, or another one has taken its place. */
  readonly onOtherServer?: () => void;
  readonly onUnreachable?: () => void;
  readonly onReachable?: () => void;
  readonly onRejoined: (identity: NodeIdentity) => void;
}

/** Set by tests only. Defaults: the constants above, and those of `node-session.ts` and `commits.ts`. */
export interface PostgresTimings {
  readonly maxWaitMs?: number;
  readonly maxOutcomeWaitMs?: number;
  readonly maxStatementMs?: number;
  readonly startWaitMs?: number;
  readonly heartbeatMs?: number;
}

export interface PostgresDatabaseOptions extends PostgresTimings {
  /** Shown to operators. */
  readonly nodeName?: string;
  readonly version?: string;
  /** The newest migration that this version knows. Default: no limit. */
  readonly schema?: number;
  /** Without a heartbeat for so long, another node may declare this one dead. */
  readonly deadAfterMs?: number;
  readonly cluster?: ClusterOptions;
  /** The server has lost commits that it had acknowledged. */
  readonly onLostCommits?: (lost: LostCommits) => void;
  /** What is in memory may differ from the database, and must be read again. Default: the process ends. */
  readonly onOutOfDate?: () => void;
  /** Called once if the server cannot be reached at the start, before the wait. */
  readonly onWait?: (error: Error) => void;
}

interface PostgresParts {
  readonly pool: Pool;
  readonly sockets: OpenSockets;
  readonly session: NodeSession;
  readonly onLost: (error: Error) => void;
}

/** A write transaction that has begun. */
interface Begun {
  readonly client: PoolClient;
  readonly marks: WriteMarks;
  readonly mark: WriteMark;
}

export class PostgresDatabase implements Database {
  readonly engine = "postgres";
  readonly #pool: Pool;
  readonly #sockets: OpenSockets;
  readonly #session: NodeSession;
  readonly #isCluster: boolean;
  readonly #onOutOfDate: () => void;
  readonly #commits: Commits;
  readonly #maxWaitMs: number;
  #marks: WriteMarks;
  /** By scope: the end of its last transaction. */
  readonly #scopes = new Map<string, Promise<void>>();
  readonly #turns = new ScanTurns();
  readonly #lossListeners: (() => void)[] = [];
  readonly #serverListeners: (() => void)[] = [];
  #problem: string | null = null;
  /** Nothing waits for a server that is away. */
  #isHasty = false;
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
    const servers = new Servers(url);
    const { cluster } = options;
    let database: PostgresDatabase | undefined;
    const session = await NodeSession.open({
      servers,
      node: {
        name: options.nodeName ?? "",
        version: options.version ?? "",
        schema: options.schema ?? Number.MAX_SAFE_INTEGER,
        deadAfterMs: options.deadAfterMs ?? DEFAULT_DEAD_AFTER_MS,
        secretCheck: cluster?.secretCheck ?? null,
        shared: cluster?.shared ?? [],
        linkVersions: cluster?.linkVersions ?? { min: 0, max: 0 },
      },
      openAddress: cluster?.openAddress ?? (() => Promise.resolve({ host: "", port: 0 })),
      onMembers: (members) => cluster?.onMembers(members),
      onSettingsVersion: cluster?.onSettingsVersion,
      onSettingsRead: cluster?.onSettingsRead,
      onDead: cluster?.onDead,
      onRejoined: (identity) => {
        database?.useIncarnation(identity);
        cluster?.onRejoined(identity);
        if (cluster === undefined) database?.reportOutOfDate();
      },
      onReplaced: onLost,
      onLostCommits: (lost) => {
        options.onLostCommits?.(lost);
        database?.reportLoss();
      },
      beginLossCheck: () => database?.beginLossCheck() ?? (() => 0),
      onOtherServer: () => {
        cluster?.onOtherServer?.();
        database?.leaveServer();
      },
      onUnreachable: cluster?.onUnreachable,
      onReachable: cluster?.onReachable,
      onUnresponsive: () => database?.leaveServer(),
      onWait,
      startWaitMs,
      heartbeatMs,
    });
    const pool = createPool(servers, sockets, maxStatementMs);
    database = new PostgresDatabase({ pool, sockets, session, onLost }, options);
    return database;
  }

  private constructor(parts: PostgresParts, options: PostgresDatabaseOptions) {
    this.#pool = parts.pool;
    this.#sockets = parts.sockets;
    this.#session = parts.session;
    this.#isCluster = options.cluster !== undefined;
    this.#onOutOfDate = options.onOutOfDate ?? (() => parts.onLost(new OutOfDateError()));
    this.#commits = new Commits({
      pool: parts.pool,
      maxOutcomeWaitMs: options.maxOutcomeWaitMs,
      onOutOfDate: this.#onOutOfDate,
      isClosed: () => this.#closed !== null,
    });
    this.#marks = new WriteMarks(parts.session.identity.inc);
    this.#maxWaitMs = options.maxWaitMs ?? MAX_WAIT_MS;
  }

  /** The membership of this process. */
  get session(): NodeSession {
    return this.#session;
  }

  /** Settings of the server on which the durability of writes depends. */
  readDurability(): Promise<ServerSetting[]> {
    return readDurability(this.#pool);
  }

  /** The incarnations of the nodes that were not declared dead, as committed at the time of the call. */
  async readLivingNodes(): Promise<readonly string[]> {
    const rows = await this.all<{ inc: string }>(LIVING_NODES);
    return rows.map(({ inc }) => inc);
  }

  /** Connections of the earlier incarnation may lead to a server that is no longer the primary. */
  private useIncarnation({ inc }: NodeIdentity): void {
    this.#marks = new WriteMarks(inc);
    this.leaveServer();
  }

  private leaveServer(): void {
    this.#sockets.destroyAll();
    for (const listener of this.#serverListeners) listener();
  }

  /** Calls the listener when the session has another server, or its own was restarted or does not answer: other connections must be opened anew. */
  onOtherServer(listener: () => void): void {
    this.#serverListeners.push(listener);
  }

  get isShared(): boolean {
    return this.#isCluster;
  }

  private reportOutOfDate(): void {
    this.#onOutOfDate();
  }

  onLoss(listener: () => void): void {
    this.#lossListeners.push(listener);
  }

  private reportLoss(): void {
    for (const listener of this.#lossListeners) listener();
  }

  private beginLossCheck(): (marks: ReadonlyMap<number, string>) => number {
    return this.#marks.beginLossCheck();
  }

  get problem(): string | null {
    const { heartbeats } = this.#session;
    // A node that has left because of the schema cannot write either; the schema is the reason.
    return heartbeats.isSchemaUnderstood ? (this.#problem ?? heartbeats.problem) : heartbeats.schemaProblem;
  }

  async all<Row>(query: SqlQuery): Promise<Row[]> {
    return (await this.#read(query)).rows as Row[];
  }

  scan<Row>(query: SqlQuery, turn: ScanTurn): Promise<Row[]> {
    // From here: while the server is away, those that wait for their turn fail together and not one after the other.
    const deadline = performance.now() + this.#maxWaitMs;
    return this.#turns.run(turn, async () => (await this.#read(query, deadline)).rows as Row[]);
  }

  readBlobs(query: SqlQuery): Promise<LabelledBlob[]> {
    return this.#whenAvailable(async () => {
      const client = await this.#pool.connect();
      try {
        const blobs = await copyBlobs(client, query);
        client.release();
        return blobs;
      } catch (error) {
        client.release(true);
        throw error;
      }
    });
  }

  async get<Row>(query: SqlQuery): Promise<Row | undefined> {
    return (await this.#read(query)).rows[0] as Row | undefined;
  }

  run(query: SqlQuery): Promise<{ changes: number }> {
    return this.transaction((tx) => tx.run(query));
  }

  async transaction<T>(
    work: (tx: Queryable) => Promise<T>,
    { scope = "", mayTakeLong = false, isConcurrent = false }: TransactionOptions = {},
  ): Promise<T> {
    const deadline = performance.now() + this.#maxWaitMs;
    const previous = this.#scopes.get(scope);
    const end = Promise.withResolvers<void>();
    this.#scopes.set(scope, end.promise);
    try {
      await previous;
      const lock = this.#isCluster && !isConcurrent ? scopeLock(scope) : null;
      for (let attempt = 1; ; attempt++) {
        let begun: Begun | undefined;
        try {
          begun = await this.#begin(deadline, lock, mayTakeLong);
          return await this.#runBegun(begun, (client) => work(asQueryable(client, mayTakeLong)));
        } catch (error) {
          const isRepeatable =
            (isLost(error) && begun !== undefined) ||
            (isConflict(error) && isConcurrent) ||
            (isLocked(error) && attempt < MAX_LOCK_WAITS);
          if (!isRepeatable || attempt === MAX_ATTEMPTS) throw this.#fail(error);
        }
        await sleep(fullJitterDelay(attempt, RETRY));
      }
    } finally {
      if (this.#scopes.get(scope) === end.promise) this.#scopes.delete(scope);
      end.resolve();
    }
  }

  /** The process stops: from now on reads and writes that find no server fail at once. Each part that stops has something to write. */
  hurry(): void {
    this.#isHasty = true;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.hurry();
    await this.#probing?.stop();
    await this.#session.close();
    setTimeout(() => this.#sockets.destroyAll(), END_TIMEOUT_MS).unref();
    await this.#pool.end();
  }

  async #runBegun<T>({ client, marks, mark }: Begun, work: (client: PoolClient) => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await work(client);
    } catch (error) {
      // A server that did not respond would not respond to ROLLBACK either.
      if (isUnavailable(error)) client.release(true);
      else await rollBack(client);
      marks.release(mark);
      throw error;
    }
    await this.#commits.commit(client, marks, mark);
    if (this.#problem !== null) this.#recover();
    return result;
  }

  async #begin(deadline: number, lock: number | null, mayTakeLong: boolean): Promise<Begun> {
    for (let attempt = 1; ; attempt++) {
      // The deadline includes the wait for earlier transactions: if the server is unavailable, all waiting transactions fail together.
      const isOver = performance.now() >= deadline;
      if (isOver && this.#problem !== null) throw new NodeSessionError();
      const isLast = this.#isHasty || isOver;
      try {
        if (this.#session.isHeld) return await this.#tryToBegin(lock, mayTakeLong);
        if (isLast) throw new NodeSessionError();
      } catch (error) {
        if (isLast || !isUnavailable(error)) throw error;
      }
      await sleep(fullJitterDelay(attempt, RETRY));
    }
  }

  async #tryToBegin(lock: number | null, mayTakeLong: boolean): Promise<Begun> {
    // Of the current incarnation: a node that was declared dead has joined again meanwhile.
    const marks = this.#marks;
    const mark = marks.take();
    if (mark === null) throw new NodeSessionError();
    let client: PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      // The driver returns one result per statement of the text.
      const text = beginWrite(mark.inc, writeMark(mark), lock, mayTakeLong);
      const results = (await client.query(
        mayTakeLong ? withoutLimit({ text }) : text,
      )) as unknown as QueryResult[];
      if (results.at(-1)?.rowCount !== 1) {
        this.#session.reportDead();
        throw new NodeSessionError();
      }
      return { client, marks, mark };
    } catch (error) {
      // The connection may have an open transaction.
      client?.release(true);
      marks.release(mark);
      throw error;
    }
  }

  #read(query: SqlQuery, deadline?: number): Promise<QueryResult> {
    const statement = toStatement(query);
    return this.#whenAvailable(() => this.#pool.query(statement), deadline);
  }

  /** Runs a read, and again while the server is unavailable. */
  async #whenAvailable<T>(
    read: () => Promise<T>,
    deadline = performance.now() + this.#maxWaitMs,
  ): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      // Before the attempt: one that a pause of this process made too long is followed by another one.
      const isLast = this.#isHasty || performance.now() >= deadline;
      try {
        if (!this.#session.isHeld) throw new NodeSessionError();
        return await read();
      } catch (error) {
        const isWaited = isLocked(error) && attempt < MAX_LOCK_WAITS;
        if (!isWaited && (!isUnavailable(error) || isLast)) throw this.#fail(error);
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

/** The node has no session: the server is unavailable, or the node was declared dead. No writes until it has joined again. */
class NodeSessionError extends Error {
  readonly code = "08006";

  constructor() {
    super("this node has no session with the database");
  }
}

class OutOfDateError extends Error {
  constructor() {
    super(
      "a write with unknown outcome was committed after its caller received an error; the data in memory is out of date",
    );
  }
}
