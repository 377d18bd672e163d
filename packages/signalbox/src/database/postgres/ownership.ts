/**
 * One process at a time owns the database: what it keeps in memory (tokens, settings) would be stale with a second one that writes.
 *
 *   taken ──connection lost──► lost ──lock free, epoch ours──► taken
 *                                └────epoch is another's─────► taken over (final)
 *
 * Invariants:
 * 1. The owner holds an advisory lock in a session of its own. The server drops the lock with the session, so it outlives neither the process nor
 *    a restart of the server.
 * 2. Whoever takes the database counts the epoch up, under a lock that every write transaction shares. So a write of an earlier owner either ends
 *    before the epoch changes, or finds that it did: there is no moment in which two processes write.
 * 3. An owner that lost its session gets the database back only with the epoch unchanged: then nobody else wrote meanwhile, and its
 *    memory is as good as before.
 * 4. The owner's session is spoken to all the time. When the server does not answer, it hangs or the network swallows everything, which no
 *    connection ever notices by itself: the session counts as lost, and `onSilence` is told.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { fullJitterDelay } from "../../core/retry.ts";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { OpenSockets } from "./open-sockets.ts";
import { isUnavailable } from "./postgres-failure.ts";
import { CREATE_MARKS, leaveMark, type WriteMark } from "./write-marks.ts";

/** Arbitrary but fixed: every Signalbox must agree on them. */
const OWNER_LOCK = 0x5347_0002;
const FENCE_LOCK = 0x5347_0003;
const CONNECT_TIMEOUT_MS = 5000;
const RETRY = { baseDelayMs: 100, maxDelayMs: 2000 };
/**
 * How often the session is spoken to, and how many beats a server may let pass: five to six seconds. Counted in beats, since a process that was
 * held up itself finds its timers and the answers due at once, and must not take that for silence.
 */
const BEAT_MS = 1000;
const MAX_MISSED_BEATS = 5;
/** How long a start waits for a server that is not there yet: containers of one application start in any order. */
const START_WAIT_MS = 30_000;
/** What this session asks takes no time, except for waiting for writes of an earlier owner, which is tried again. */
const ANSWER_TIMEOUT_MS = 5000;
/** For saying goodbye to a server that may not be listening. */
const END_TIMEOUT_MS = 2000;

const CREATE_TABLE =
  "CREATE TABLE IF NOT EXISTS signalbox_owner (id INTEGER PRIMARY KEY, epoch BIGINT NOT NULL)";
const COUNT_UP = `INSERT INTO signalbox_owner (id, epoch) VALUES (1, 1)
  ON CONFLICT (id) DO UPDATE SET epoch = signalbox_owner.epoch + 1 RETURNING epoch`;

/** Begins a write transaction, in one round trip; its last result has the epoch. */
export function beginWrite(mark: WriteMark): string {
  return `BEGIN; SELECT pg_advisory_xact_lock_shared(${FENCE_LOCK}); ${leaveMark(mark)};
    SELECT epoch::text FROM signalbox_owner`;
}

export interface OwnershipOptions {
  readonly url: string;
  /** Another process has the database, or had it meanwhile. */
  readonly onTakenOver: (error: Error) => void;
  /** The server does not answer: other connections should not wait for it either. */
  readonly onSilence: () => void;
  /** At the start, once: the server cannot be reached, and is waited for. */
  readonly onWait?: ((error: Error) => void) | undefined;
  readonly startWaitMs?: number | undefined;
  readonly beatMs?: number | undefined;
}

export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #closing = new AbortController();
  readonly #sockets = new OpenSockets();
  #client: Client | null = null;
  #beating: NodeJS.Timeout | undefined;
  #epoch = "";
  #regaining: Promise<void> = Promise.resolve();

  private constructor(options: OwnershipOptions) {
    this.#options = options;
  }

  /** Writes nothing before the lock is held. Waits for a server that cannot be reached, for a while. */
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
      ownership.#epoch = await countUp(client);
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

  /** Different for every process that ever owned the database. */
  get epoch(): string {
    return this.#epoch;
  }

  /** True for the epoch that a write transaction has read, if it may go on. */
  isEpoch(epoch: string | undefined): boolean {
    return epoch === this.#epoch;
  }

  /** A write found another epoch. */
  takenOver(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#options.onTakenOver(
      new Error("another Signalbox process has taken the PostgreSQL database over; this one must not go on"),
    );
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#beating);
    await this.#regaining;
    if (this.#client !== null) await this.#end(this.#client);
    this.#client = null;
  }

  #hold(client: Client): void {
    this.#client = client;
    // Both come when a connection breaks, or only the second; a listener must be there for the first.
    client.on("error", () => this.#lose(client));
    client.on("end", () => this.#lose(client));
    this.#listen(client);
  }

  #lose(client: Client): void {
    if (this.#client !== client || this.#closing.signal.aborted) return;
    this.#client = null;
    clearInterval(this.#beating);
    this.#regaining = this.#regain();
  }

  #listen(client: Client): void {
    let isAnswered = true;
    let missed = 0;
    this.#beating = setInterval(() => {
      if (isAnswered) {
        isAnswered = false;
        missed = 0;
        client.query("SELECT 1").then(
          () => (isAnswered = true),
          () => {
            // The connection broke, as its events tell; any other refusal is a beat that was missed.
          },
        );
        return;
      }
      missed += 1;
      if (missed < MAX_MISSED_BEATS) return;
      this.#options.onSilence();
      this.#sockets.cutOff();
    }, this.#options.beatMs ?? BEAT_MS).unref();
  }

  async #connect(): Promise<Client> {
    const client = new Client({
      connectionString: this.#options.url,
      application_name: "signalbox owner",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      keepAlive: true,
      stream: this.#sockets.create,
      // So that the server misses a lost session, and frees its lock, within half a minute.
      options: "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3",
    });
    // What breaks while it is being used is told by the query; without a listener it would be an uncaught error.
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }

  async #end(client: Client): Promise<void> {
    const timer = setTimeout(() => this.#sockets.cutOff(), END_TIMEOUT_MS);
    try {
      await client.end();
    } catch {
      // It was broken already; the server has ended the session, or will.
    }
    clearTimeout(timer);
  }

  async #regain(): Promise<void> {
    const { signal } = this.#closing;
    for (let attempt = 1; !signal.aborted; attempt++) {
      if ((await this.#tryToRegain()) === "done") return;
      // Aborted when it closes, which the loop looks at.
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
        this.takenOver();
        return "done";
      }
      if (isFree && !this.#closing.signal.aborted) {
        this.#hold(client);
        return "done";
      }
      // Not free although nobody has counted up: our lost session, which the server has not missed yet.
    } catch {
      // It is not back yet; readiness says so meanwhile.
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

async function countUp(client: Client): Promise<string> {
  await client.query(`${CREATE_TABLE}; ${CREATE_MARKS}`);
  await client.query("BEGIN");
  // Waits for writes of an earlier owner that are still under way.
  await client.query("SELECT pg_advisory_xact_lock($1)", [FENCE_LOCK]);
  const { rows } = await client.query<{ epoch: string }>(COUNT_UP);
  await client.query("COMMIT");
  return String(rows[0]?.epoch);
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
