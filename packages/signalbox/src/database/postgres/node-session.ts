/**
 * The membership of this process in the database: a separate connection that renews the node's heartbeat, reports the other nodes, and
 * detects a server that does not respond.
 *
 *   held ──connection lost──► lost ──reconnected, row alive──► held
 *                               ├────row dead────► joins again with a new incarnation (cluster), or `onReplaced` (alone, final)
 *                               └────the server lost acknowledged commits────► `onLostCommits`, joins again with a new incarnation
 *
 * Invariants:
 * 1. A heartbeat is the only sign of life. A row that was declared dead is never revived.
 * 2. A node without a cluster secret is alone: it does not join while another node is alive, and no other node joins while it is alive.
 * 3. `heartbeats.lastAt` is the time at which the last acknowledged heartbeat was *sent*, by the monotonic clock of this process: until
 *    `deadAfterMs` later no other node has declared this one dead.
 * 4. After each reconnect the server is asked for the last acknowledged heartbeat and writes of this incarnation: a server that does not have
 *    them has lost acknowledged commits. That happens if an asynchronous standby replaces the primary, or without `fsync`.
 * 5. A node declares another one dead only if it has itself had its session, and its heartbeats, while the other one was silent (`silences.ts`): a
 *    server that was restarted, or that has stalled, has silenced all of them, and none is dead.
 * 6. A node whose version cannot use the schema does not join, and leaves when the schema changes.
 * 7. A heartbeat without an answer for five seconds counts as a lost connection, and `onUnresponsive` is called.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { afterAwakeTime } from "../../core/awake-time.ts";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { fullJitterDelay } from "../../core/retry.ts";
import {
  describeFailure,
  hasNoRoom,
  isLocked,
  isTimeout,
  isUnavailable,
  type Servers,
} from "../../engines/postgres-session/index.ts";
import {
  beat,
  joinAs,
  leave,
  type NodeDescription,
  readOwn,
  readStored,
  reserveIncarnation,
  retire,
  type StoredNode,
} from "./node-table.ts";
import type { ClusterMember, NodeIdentity, NodeState } from "../membership.ts";
import { JoinRefusal } from "./join-rules.ts";
import { Heartbeats } from "./heartbeats.ts";
import { Silences } from "./silences.ts";
import { NodeConnections } from "./node-connections.ts";
import { problemOf } from "./postgres-failure.ts";
import { MARK_COUNT } from "./write-marks.ts";

const RETRY = { baseDelayMs: 100, maxDelayMs: 1000 };
const HEARTBEAT_MS = 500;
/** A number and not a time: after a pause of this process, timers and responses are due together, which must not look like a silent server. */
const MAX_MISSED_HEARTBEATS = 10;
/** How long a stop waits for the server to remove the node's row. */
const MAX_CLOSE_MS = 2000;
/** How long a start waits for the server: the containers of an application start in any order. */
const START_WAIT_MS = 30_000;
/** A process that was killed is in the way for less than this, unless `cluster.deadAfterMs` is long. */
const QUIET_WAIT_MS = 5000;
/** Between two looks at the heartbeats of a running node. */
const REFUSED_RETRY_MS = HEARTBEAT_MS / 2;
/** Rows of dead nodes are deleted after a day; a missing row proves nothing then. */
const ROW_LIFE_MS = 86_400_000;

/** Acknowledged commits of this node that the server does not have any more: at least so many. */
export interface LostCommits {
  readonly writes: number;
  readonly heartbeats: number;
}

export interface NodeSessionOptions {
  readonly servers: Servers;
  readonly node: NodeDescription;
  /** Opens the address at which other nodes reach this one. Called for each incarnation, before other nodes see it. */
  readonly openAddress: (identity: NodeIdentity) => Promise<{ readonly host: string; readonly port: number }>;
  /** The living nodes, this one included, after each heartbeat. */
  readonly onMembers: (members: readonly ClusterMember[]) => void;
  /** After each heartbeat; `sentAt` is a time of the monotonic clock. */
  readonly onSettingsVersion?: ((version: number, sentAt: number) => void) | undefined;
  /** The same after a read in place of a heartbeat that the server cannot store: other nodes may declare this one dead at any time. */
  readonly onSettingsRead?: ((version: number, sentAt: number) => void) | undefined;
  /** This node was declared dead. It joins again, unless it is alone. */
  readonly onDead?: (() => void) | undefined;
  /** This node was declared dead, and has joined again: other nodes may have changed anything meanwhile. */
  readonly onRejoined: (identity: NodeIdentity) => void;
  /** A node that runs alone was replaced by another process. Final. */
  readonly onReplaced: (error: Error) => void;
  /** The server has lost commits that it had acknowledged. This node then joins again, as after it was declared dead. */
  readonly onLostCommits: (lost: LostCommits) => void;
  /** Called before the marks are read; the returned function says how many acknowledged writes are missing from the marks that the server has. */
  readonly beginLossCheck: () => (marks: ReadonlyMap<number, string>) => number;
  /** The session has another server, or the same one after a restart: other connections may lead to a server that is the primary no more. */
  readonly onOtherServer: () => void;
  /** The server does not respond: other connections should not wait for it. */
  readonly onUnresponsive: () => void;
  /** An attempt to use the server has failed. */
  readonly onUnreachable?: (() => void) | undefined;
  /** The session was lost, and is there again. */
  readonly onReachable?: (() => void) | undefined;
  /** Called once if the start has to wait: at once if the server cannot be reached, and after some seconds if a process that was killed is in the way. */
  readonly onWait?: ((error: Error) => void) | undefined;
  /** For tests. */
  readonly startWaitMs?: number | undefined;
  /** For tests. */
  readonly heartbeatMs?: number | undefined;
}

export class NodeSession {
  readonly #options: NodeSessionOptions;
  readonly #closing = new AbortController();
  readonly #connections: NodeConnections;
  #client: Client | null = null;
  #timer: NodeJS.Timeout | undefined;
  #identity: NodeIdentity = { inc: "", cluster: "" };
  #state: NodeState = "up";
  readonly #heartbeats: Heartbeats;
  /** Begins anew with each session, and when it is lost. */
  #silences = new Silences(performance.now());
  #serverStart = "";
  #isLossReported = false;
  #isBeating = false;
  /** Heartbeats since the last one that was answered. */
  #missed = 0;
  #regaining: Promise<void> = Promise.resolve();

  private constructor(options: NodeSessionOptions) {
    this.#options = options;
    this.#connections = new NodeConnections(options.servers);
    this.#heartbeats = new Heartbeats(options.node.schema);
  }

  /** Joins. Waits for a server that cannot be reached, and for a process that was killed to be seen as dead. */
  static async open(options: NodeSessionOptions): Promise<NodeSession> {
    const session = new NodeSession(options);
    const startedAt = performance.now();
    let sign: string | null = null;
    let isAnnounced = false;
    const announce = (error: unknown) => {
      if (!isAnnounced) options.onWait?.(error as Error);
      isAnnounced = true;
    };
    for (let attempt = 1; ; attempt++) {
      let delayMs = fullJitterDelay(attempt, RETRY);
      try {
        session.#hold(await session.#joinAnew());
        return session;
      } catch (error) {
        if (error instanceof JoinRefusal) {
          // A row whose heartbeat stands still is that of a process that has just been killed, unless time shows otherwise.
          if (error.sign === null || (sign !== null && sign !== error.sign))
            throw new DataFolderError(error.message, { cause: error });
          sign = error.sign;
          delayMs = REFUSED_RETRY_MS;
          if (performance.now() - startedAt > QUIET_WAIT_MS) announce(error);
        } else if (isUnavailable(error) || isLocked(error)) {
          const isLate = performance.now() + delayMs >= startedAt + (options.startWaitMs ?? START_WAIT_MS);
          // Never after the first attempt: the machine may have stood still meanwhile.
          if (isLate && attempt > 1)
            throw new DataFolderError(`cannot connect to PostgreSQL: ${describeFailure(error)}`, {
              cause: error,
            });
          announce(error);
        } else {
          if (error instanceof DataFolderError) throw error;
          throw new DataFolderError(`cannot connect to PostgreSQL: ${describeFailure(error)}`, {
            cause: error,
          });
        }
      }
      await sleep(delayMs);
    }
  }

  get identity(): NodeIdentity {
    return this.#identity;
  }

  get isHeld(): boolean {
    return this.#client !== null;
  }

  /** What the heartbeats have told. */
  get heartbeats(): Heartbeats {
    return this.#heartbeats;
  }

  /** Announces that this node takes no new work. Resolves when the database has it. */
  async drain(): Promise<void> {
    this.#state = "draining";
    if (this.#client !== null) await this.#beat(this.#client);
  }

  /** A write found that this node was declared dead. */
  reportDead(): void {
    this.#options.onDead?.();
    if (this.#client !== null) this.#lose(this.#client);
  }

  /** In bounded time, also if the server does not answer. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#timer);
    const cancel = afterAwakeTime(MAX_CLOSE_MS, () => this.#connections.destroyAll());
    await this.#regaining;
    const client = this.#client;
    this.#client = null;
    if (client !== null) {
      // A node that cannot remove its row is declared dead by the others.
      await leave(client, this.#identity.inc).catch(() => undefined);
      await this.#connections.end(client);
    }
    cancel();
  }

  async #joinAnew(): Promise<Client> {
    const client = await this.#connections.open();
    try {
      const identity = await reserveIncarnation(client);
      const { serverStart, neededSchema } = await readStored(client, identity.inc);
      this.#heartbeats.recordSchema(neededSchema);
      if (!this.#heartbeats.isSchemaUnderstood) throw new JoinRefusal(this.#heartbeats.schemaProblem);
      const address = await this.#options.openAddress(identity);
      const sentAt = performance.now();
      await joinAs(client, identity.inc, this.#options.node, {
        address,
        markCount: MARK_COUNT,
        findDead: (nodes) => this.#silences.findDead(nodes, { sentAt, receivedAt: performance.now() }),
      });
      this.#serverStart = serverStart;
      this.#identity = identity;
      this.#heartbeats.recordJoin(sentAt);
      this.#isLossReported = false;
      return client;
    } catch (error) {
      await this.#connections.end(client);
      throw error;
    }
  }

  #hold(client: Client): void {
    this.#client = client;
    this.#silences = new Silences(performance.now());
    // A broken connection emits both events or only `end`.
    client.on("error", () => this.#lose(client));
    client.on("end", () => this.#lose(client));
    this.#timer = setInterval(() => this.#tick(client), this.#options.heartbeatMs ?? HEARTBEAT_MS).unref();
    this.#isBeating = false;
    this.#missed = 0;
    this.#tick(client);
  }

  #tick(client: Client): void {
    this.#missed += 1;
    if (this.#missed > MAX_MISSED_HEARTBEATS) {
      this.#options.onUnresponsive();
      this.#options.onUnreachable?.();
      this.#connections.destroyAll();
    } else if (!this.#isBeating)
      this.#beat(client).catch((error: unknown) => this.#onFailedBeat(client, error));
  }

  async #beat(client: Client): Promise<void> {
    this.#isBeating = true;
    const sent = { at: performance.now(), time: Date.now() };
    const silences = this.#silences;
    const answer = await beat(client, this.#identity.inc, {
      state: this.#state,
      findDead: (others) => silences.findDead(others, { sentAt: sent.at, receivedAt: performance.now() }),
    });
    if (this.#client !== client) return;
    this.#answered();
    if (answer !== null) this.#heartbeats.record(answer, sent);
    if (answer === null) this.#options.onDead?.();
    if (answer === null || !this.#heartbeats.isSchemaUnderstood) {
      this.#lose(client);
      return;
    }
    this.#options.onMembers(answer.members);
    this.#options.onSettingsVersion?.(answer.settingsVersion, sent.at);
  }

  #answered(): void {
    this.#isBeating = false;
    this.#missed = 0;
  }

  /** A broken connection emits events. */
  #onFailedBeat(client: Client, error: unknown): void {
    if (this.#client !== client) return;
    if (!hasNoRoom(error)) {
      // Without an answer, or while the row is locked, the timer decides.
      if (isLocked(error)) this.#isBeating = false;
      else if (!isTimeout(error)) this.#lose(client);
      return;
    }
    // Without an answer, the timer decides.
    this.#readInstead(client, problemOf(error as Error)).catch(() => undefined);
  }

  /** The server cannot store the heartbeat, but can be read. */
  async #readInstead(client: Client, problem: string): Promise<void> {
    const sentAt = performance.now();
    const { isAlive, settingsVersion } = await readOwn(client, this.#identity.inc);
    if (this.#client !== client) return;
    this.#answered();
    if (isAlive) {
      this.#heartbeats.recordRead(sentAt, problem);
      this.#options.onSettingsRead?.(settingsVersion, sentAt);
      return;
    }
    this.#options.onDead?.();
    this.#lose(client);
  }

  #lose(client: Client): void {
    if (this.#client !== client || this.#closing.signal.aborted) return;
    this.#client = null;
    this.#isBeating = false;
    this.#silences = new Silences(performance.now());
    clearInterval(this.#timer);
    this.#regaining = this.#regain(client);
  }

  async #regain(lost: Client): Promise<void> {
    await this.#connections.end(lost);
    const { signal } = this.#closing;
    for (let attempt = 1; !signal.aborted; attempt++) {
      if (await this.#tryToRegain()) return;
      // An abort rejects the sleep; the loop condition handles it.
      await sleep(fullJitterDelay(attempt, RETRY), undefined, { signal }).catch(() => undefined);
    }
  }

  async #tryToRegain(): Promise<boolean> {
    let client: Client | undefined;
    try {
      client = await this.#connections.open();
      const countLostWrites = this.#options.beginLossCheck();
      const stored = await readStored(client, this.#identity.inc);
      this.#heartbeats.recordSchema(stored.neededSchema);
      if (!this.#heartbeats.isSchemaUnderstood) throw new JoinRefusal(this.#heartbeats.schemaProblem);
      const isLost = this.#reportLoss(stored, countLostWrites(stored.marks));
      if (isLost) await retire(client, this.#identity.inc);
      if (isLost || !(await this.#isAlive(client))) {
        await this.#connections.end(client);
        client = undefined;
        await this.#rejoin(isLost);
        return true;
      }
      if (stored.serverStart !== this.#serverStart) {
        this.#serverStart = stored.serverStart;
        this.#options.onOtherServer();
      }
      this.#hold(client);
      this.#options.onReachable?.();
      return true;
    } catch {
      // The server is still unavailable; `/readyz` reports it.
      this.#options.onUnreachable?.();
      if (client !== undefined) await this.#connections.end(client);
      return false;
    }
  }

  async #isAlive(client: Client): Promise<boolean> {
    const sent = { at: performance.now(), time: Date.now() };
    try {
      const options = { state: this.#state, findDead: null };
      const answer = await beat(client, this.#identity.inc, options);
      if (answer === null) return false;
      this.#heartbeats.record(answer, sent);
      return true;
    } catch (error) {
      if (!hasNoRoom(error)) throw error;
      return (await readOwn(client, this.#identity.inc)).isAlive;
    }
  }

  #reportLoss({ beats }: StoredNode, writes: number): boolean {
    const { lastAt, count } = this.#heartbeats;
    const isRowExpired = beats === null && performance.now() - lastAt > ROW_LIFE_MS;
    if (isRowExpired) return false;
    const lost = { writes, heartbeats: Math.max(0, count - (beats ?? 0)) };
    if (beats !== null && lost.writes === 0 && lost.heartbeats === 0) return false;
    if (!this.#isLossReported) this.#options.onLostCommits(lost);
    this.#isLossReported = true;
    return true;
  }

  async #rejoin(isAfterLoss: boolean): Promise<void> {
    const { node, onRejoined } = this.#options;
    if (node.secretCheck === null && !isAfterLoss) {
      this.#beReplaced();
      return;
    }
    try {
      this.#hold(await this.#joinAnew());
      this.#options.onReachable?.();
    } catch (error) {
      if (node.secretCheck !== null || !(error instanceof JoinRefusal)) throw error;
      this.#beReplaced();
      return;
    }
    onRejoined(this.#identity);
  }

  #beReplaced(): void {
    this.#closing.abort();
    this.#options.onReplaced(
      new Error("another Signalbox process has taken over the PostgreSQL database; this process must stop"),
    );
  }
}
