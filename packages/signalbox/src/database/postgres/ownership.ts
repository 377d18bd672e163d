/**
 * Ensures that only one process at a time owns the database: the data that a process keeps in memory (tokens, settings) would be out of date if
 * a second process wrote.
 *
 *   held ──session lost──► lost ──lock free, epoch unchanged──► held
 *                            └────epoch changed───────────────► taken over (final)
 *
 * Invariants:
 * 1. The owner holds an advisory lock in a separate session. The server releases the lock when the session ends, so the lock does not survive
 *    the process or a restart of the server.
 * 2. A new owner increments the epoch under an exclusive lock that every write transaction holds as a shared lock. A write of an earlier owner
 *    either ends before the epoch changes or reads the new epoch and fails: two processes never write at the same time.
 * 3. An owner that lost its session becomes the owner again only if the epoch is unchanged: no other process has written, and its memory is
 *    up to date.
 * 4. Heartbeat queries detect a server that does not respond and a network that drops all packets, which a connection does not report. The
 *    session then counts as lost, and `onUnresponsive` is called.
 * See docs/decisions/0092 and docs/decisions/0099.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { fullJitterDelay } from "../../core/retry.ts";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { OpenSockets } from "./open-sockets.ts";
import { isUnavailable } from "./postgres-failure.ts";
import { CREATE_MARKS, writeMark, type WriteMark } from "./write-marks.ts";

/** Arbitrary keys, the same in every version. */
const OWNER_LOCK = 0x5347_0002;
const FENCE_LOCK = 0x5347_0003;
const CONNECT_TIMEOUT_MS = 5000;
const RETRY = { baseDelayMs: 100, maxDelayMs: 2000 };
/**
 * Interval of heartbeats, and the number of heartbeats without a response after which the session counts as lost: five to six seconds. The limit is a
 * number and not a time: after a pause of this process, timers and responses are due together, which must not look like an unresponsive server.
 */
const HEARTBEAT_MS = 1000;
const MAX_MISSED_HEARTBEATS = 5;
/** How long a start waits for the server: the containers of an application start in any order. */
const START_WAIT_MS = 30_000;
/** The queries of this session are fast, except the wait for writes of an earlier owner, which is retried. */
const QUERY_TIMEOUT_MS = 5000;
/** Time limit for closing the session. */
const END_TIMEOUT_MS = 2000;

const CREATE_TABLE =
  "CREATE TABLE IF NOT EXISTS signalbox_owner (id INTEGER PRIMARY KEY, epoch BIGINT NOT NULL)";
const INCREMENT_EPOCH = `INSERT INTO signalbox_owner (id, epoch) VALUES (1, 1)
  ON CONFLICT (id) DO UPDATE SET epoch = signalbox_owner.epoch + 1 RETURNING epoch`;

/** Returns the statements that begin a write transaction, for one round trip. The last result is the epoch. */
export function beginWrite(mark: WriteMark): string {
  return `BEGIN; SELECT pg_advisory_xact_lock_shared(${FENCE_LOCK}); ${writeMark(mark)};
    SELECT epoch::text FROM signalbox_owner`;
}

export interface OwnershipOptions {
  readonly url: string;
  /** Another process owns the database, or has owned it since. */
  readonly onTakenOver: (error: Error) => void;
  /** The server does not respond: other connections should not wait for it. */
  readonly onUnresponsive: () => void;
  /** Called once if the server cannot be reached at the start, before the wait. */
  readonly onWait?: ((error: Error) => void) | undefined;
  readonly startWaitMs?: number | undefined;
  readonly heartbeatMs?: number | undefined;
}

export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #closing = new AbortController();
  readonly #sockets = new OpenSockets();
  #client: Client | null = null;
  #heartbeat: NodeJS.Timeout | undefined;
  #epoch = "";
  #regaining: Promise<void> = Promise.resolve();

  private constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /** Becomes the owner. Waits for a server that cannot be reached. Writes nothing before the lock is held. */
  static async take(options: OwnershipOptions): Promise<Ownership> {
    const deadline = performance.now() + (options.startWaitMs ?? START_WAIT_MS);
    for (let attempt = 1; ; attempt++) {
      try {
        return await Ownership.#tryToTake(options);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        const delayMs = fullJitterDelay(attempt, RETRY);
        if (performance.now() + delayMs >= deadline)
          throw new DataFolderError(`cannot connect to PostgreSQL: ${error.message}`, { cause: error });
        if (attempt === 1) options.onWait?.(error);
        await sleep(delayMs);
      }
    }
  }

  static async #tryToTake(options: OwnershipOptions): Promise<Ownership> {
    const ownership = new Ownership(options);
    let client: Client;
    try {
      client = await ownership.#connect();
    } catch (cause) {
      if (isUnavailable(cause)) throw cause;
      throw new DataFolderError(`cannot connect to PostgreSQL: ${reason(cause)}`, { cause });
    }
    try {
      if (!(await tryLock(client)))
        throw new DataFolderError("the PostgreSQL database is in use by another Signalbox process");
      ownership.#epoch = await incrementEpoch(client);
    } catch (error) {
      await ownership.#end(client);
      throw error;
    }
    ownership.#hold(client);
    return ownership;
  }

  get isHeld(): boolean {
    return this.#client !== null;
  }

  /** Different for every owner of the database. */
  get epoch(): string {
    return this.#epoch;
  }

  /** Returns true if a write transaction that has read this epoch may continue. */
  isEpoch(epoch: string | undefined): boolean {
    return epoch === this.#epoch;
  }

  /** Called when another epoch was read: reports the loss of the database, once. */
  reportTakeover(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#options.onTakenOver(
      new Error("another Signalbox process has taken over the PostgreSQL database; this process must stop"),
    );
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#heartbeat);
    await this.#regaining;
    if (this.#client !== null) await this.#end(this.#client);
    this.#client = null;
  }

  #hold(client: Client): void {
    this.#client = client;
    // A broken connection emits both events or only `end`. An `error` event without a listener would be an uncaught exception.
    client.on("error", () => this.#lose(client));
    client.on("end", () => this.#lose(client));
    this.#startHeartbeat(client);
  }

  #lose(client: Client): void {
    if (this.#client !== client || this.#closing.signal.aborted) return;
    this.#client = null;
    clearInterval(this.#heartbeat);
    this.#regaining = this.#regain();
  }

  #startHeartbeat(client: Client): void {
    let isAnswered = true;
    let missed = 0;
    this.#heartbeat = setInterval(() => {
      if (isAnswered) {
        isAnswered = false;
        missed = 0;
        client.query("SELECT 1").then(
          () => (isAnswered = true),
          () => {
            // A broken connection emits events; any other error counts as a missed heartbeat.
          },
        );
        return;
      }
      missed += 1;
      if (missed < MAX_MISSED_HEARTBEATS) return;
      this.#options.onUnresponsive();
      this.#sockets.destroyAll();
    }, this.#options.heartbeatMs ?? HEARTBEAT_MS).unref();
  }

  async #connect(): Promise<Client> {
    const client = new Client({
      connectionString: this.#options.url,
      application_name: "signalbox owner",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      stream: this.#sockets.create,
      // The server detects a lost session, and releases its lock, within half a minute.
      options: "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3",
    });
    // Without a listener an error would be an uncaught exception. The running query reports it.
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }

  async #end(client: Client): Promise<void> {
    const timer = setTimeout(() => this.#sockets.destroyAll(), END_TIMEOUT_MS);
    try {
      await client.end();
    } catch {
      // The connection was already broken; the server ends the session.
    }
    clearTimeout(timer);
  }

  async #regain(): Promise<void> {
    const { signal } = this.#closing;
    for (let attempt = 1; !signal.aborted; attempt++) {
      if ((await this.#tryToRegain()) === "done") return;
      // An abort rejects the sleep; the loop condition handles it.
      await sleep(fullJitterDelay(attempt, RETRY), undefined, { signal }).catch(() => undefined);
    }
  }

  async #tryToRegain(): Promise<"done" | "later"> {
    let client: Client | undefined;
    try {
      client = await this.#connect();
      const isFree = await tryLock(client);
      const { rows } = await client.query<{ epoch: string }>("SELECT epoch::text FROM signalbox_owner");
      if (!this.isEpoch(rows[0]?.epoch)) {
        await this.#end(client);
        this.reportTakeover();
        return "done";
      }
      if (isFree && !this.#closing.signal.aborted) {
        this.#hold(client);
        return "done";
      }
      // Not free with an unchanged epoch: the server has not yet detected that the previous session was lost.
    } catch {
      // The server is still unavailable; `/readyz` reports it.
    }
    if (client !== undefined) await this.#end(client);
    return "later";
  }
}

async function tryLock(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ taken: boolean }>("SELECT pg_try_advisory_lock($1) AS taken", [
    OWNER_LOCK,
  ]);
  return rows[0]?.taken === true;
}

async function incrementEpoch(client: Client): Promise<string> {
  await client.query(`${CREATE_TABLE}; ${CREATE_MARKS}`);
  await client.query("BEGIN");
  // Waits for running writes of an earlier owner.
  await client.query("SELECT pg_advisory_xact_lock($1)", [FENCE_LOCK]);
  const { rows } = await client.query<{ epoch: string }>(INCREMENT_EPOCH);
  await client.query("COMMIT");
  return String(rows[0]?.epoch);
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
