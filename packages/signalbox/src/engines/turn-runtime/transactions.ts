/**
 * Opens and ends an instance's transactions, so that agents' code never does.
 *
 * The first write of a segment opens the segment's transaction. A segment is what a turn does without giving the event loop back: its function
 * up to the first await that really waits, then from each such await to the next. (An await of something that is already there does
 * not end the segment, so `await this.queue(…)` stays in one transaction with what follows.) The segment ends, and the transaction
 * commits, when the turn ends or when the queue of microtasks has run dry, whichever is first.
 *
 * Invariants:
 * 1. At most one transaction is open, and it belongs to one turn (or to code outside of turns). A write of another turn ends it first:
 *    that other code runs at all means that the owner is at an await. (Only an interleaving agent has such turns. There, a turn that
 *    has just thrown looks the same for a moment: if another turn writes in that moment, the last segment of the first one stays.)
 * 2. A turn that throws rolls back its open transaction and nothing else.
 * 3. Participants keep in-memory copies of stored things in step: they write before a commit and revert after a rollback.
 * 4. A turn that was cut or whose earlier segment failed to commit cannot write any more.
 *
 * Segments that end before the next sync share one transaction of SQLite, a batch: each is a savepoint in it, and the batch is committed
 * when the gate is about to sync, when it is full, or when the event loop comes round and no sync is due. Most of a small commit's cost is
 * writing the same few pages to the log again; nothing is acknowledged before the sync, so nobody can tell the difference.
 *
 * 5. The log never holds part of a segment: a batch is committed only between segments.
 * 6. A batch that cannot be committed takes all its segments with it, and none of their outputs leave: the gate learns of it instead of a
 *    sync. After that nothing can be written; the instance starts again from what is stored. Only storage itself can fail a batch: an
 *    agent with constraints that the commit checks (`DEFERRABLE`) gets one for each segment.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { InstanceDatabase } from "../instance-store/instance-store.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { currentTurn } from "./current-turn.ts";
import type { OutputGate } from "./output-gate.ts";
import type { Turn } from "./turn.ts";

export interface Participant {
  /** Last chance to write inside the transaction. */
  beforeCommit?(): void;
  afterCommit?(): void;
  afterRollback?(): void;
}

const SAVEPOINT = rawSql("SAVEPOINT segment");
const RELEASE = rawSql("RELEASE segment");
const ROLLBACK_TO = rawSql("ROLLBACK TO segment");
const DEFERRABLE = sql`SELECT 1 AS found FROM sqlite_schema WHERE sql LIKE '%deferrable%' LIMIT 1`;

/** Segments in a batch: nearly all there is to gain, and few enough that their pages stay in the connection's cache. */
const MAX_SEGMENTS = 16;

export class TurnCutError extends Error {
  override readonly name = "TurnCutError";

  constructor() {
    super("this turn ran over its time limit and cannot write any more");
  }
}

export class Transactions {
  readonly #database: InstanceDatabase;
  readonly #gate: OutputGate;
  readonly #onCommitFailure: (error: Error) => void;
  readonly #participants: Participant[] = [];
  #isOpen = false;
  #owner: Turn | undefined;
  /** Distinguishes the transaction a pending end-of-segment was scheduled for from later ones. */
  #number = 0;
  /** Segments in the batch that SQLite has not committed, the open one included; 0 when there is no batch. */
  #batched = 0;
  /** Of the batch's last segment. */
  #lastOwner: Turn | undefined;
  /** The database's count of changes as of which `#hasDeferrable` is known. */
  #tableChanges = -1;
  #hasDeferrable = false;
  #failure: Error | null = null;
  /** Those who wait for the open segment to end and the batch to be committed. */
  #flushing: { resolve(): void; reject(error: Error): void }[] = [];

  constructor(database: InstanceDatabase, gate: OutputGate, onCommitFailure: (error: Error) => void) {
    this.#database = database;
    this.#gate = gate;
    this.#onCommitFailure = onCommitFailure;
    gate.beforeSync = () => this.#flush();
  }

  join(participant: Participant): void {
    this.#participants.push(participant);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Must be called before every write. */
  open(): void {
    const turn = currentTurn();
    if (turn !== undefined) {
      if (turn.phase === "cut") throw new TurnCutError();
      if (turn.doom !== null) throw turn.doom;
    }
    if (this.#isOpen) {
      if (this.#owner === turn) return;
      this.#endSegment();
    }
    if (this.#failure !== null) throw this.#failure;
    if (this.#batched > 0 && !this.#canShare()) this.#commitBatch();
    // The first segment of a batch needs no savepoint: rolling it back is rolling back the batch.
    if (this.#batched === 0) {
      this.#database.begin();
      setImmediate(() => this.#flushUnlessDue());
    } else this.#database.run(SAVEPOINT);
    this.#batched += 1;
    this.#isOpen = true;
    this.#owner = turn;
    this.#lastOwner = turn;
    this.#number += 1;
    this.#gate.transactionOpened();
    if (turn?.isOnStack !== true) this.#scheduleEnd();
  }

  /** The turn's function has returned a promise: the segment ends when the microtasks have run dry. */
  leftStack(turn: Turn): void {
    if (this.#isOpen && this.#owner === turn) this.#scheduleEnd();
  }

  /** Commits what the turn has open; throws, rolled back, when that fails. */
  commitOf(turn: Turn): void {
    if (this.#isOpen && this.#owner === turn) this.#commit();
  }

  rollbackOf(turn: Turn): void {
    if (this.#isOpen && this.#owner === turn) this.#rollback();
  }

  /** Undoes what the running code has open; its turn goes on. */
  undo(): void {
    if (this.#isOpen && this.#owner === currentTurn()) this.#rollback();
  }

  /** Commits what the running code has open, so that it stays even if the process ends at once. */
  commitNow(): void {
    if (!this.#isOpen || this.#owner !== currentTurn()) return;
    this.#commit();
    this.#commitBatch();
    this.#database.flush();
  }

  /** Ends whatever is open before the database closes. */
  finish(): void {
    if (this.#isOpen) this.#endSegment();
    try {
      this.#commitBatch();
    } catch {
      // Told through onCommitFailure; nothing of the batch was acknowledged.
    }
  }

  #scheduleEnd(): void {
    const number = this.#number;
    // A tick queued from a microtask runs when no microtask is left; queued from here it could run before them.
    queueMicrotask(() =>
      process.nextTick(() => {
        if (this.#isOpen && this.#number === number) this.#endSegment();
      }),
    );
  }

  /** A commit with nobody to throw to: its failure dooms the turn that wrote. */
  #endSegment(): void {
    const owner = this.#owner;
    try {
      this.#commit();
    } catch (error) {
      if (owner !== undefined) owner.doom = error as Error;
    }
  }

  #commit(): void {
    try {
      for (const participant of this.#participants) participant.beforeCommit?.();
      if (this.#hasDeferrable) {
        // Alone in its batch, and told at once if it fails.
        this.#database.commit();
        this.#batched = 0;
      } else if (this.#batched > 1) this.#database.run(RELEASE);
    } catch (cause) {
      throw this.#fail(cause, this.#batched > 1);
    }
    this.#isOpen = false;
    this.#owner = undefined;
    this.#gate.transactionCommitted();
    for (const participant of this.#participants) participant.afterCommit?.();
    // A participant may have begun the next segment.
    if (!this.#isOpen && (this.#batched >= MAX_SEGMENTS || this.#flushing.length > 0)) this.#commitBatch();
  }

  #rollback(): void {
    try {
      if (this.#batched > 1) {
        this.#database.run(ROLLBACK_TO);
        this.#database.run(RELEASE);
      } else this.#database.rollback();
    } catch (cause) {
      // SQLite has ended the whole transaction by itself (disk full, I/O), and with it what other turns wrote.
      this.#fail(cause, true);
      return;
    }
    this.#batched -= 1;
    this.#revert();
    if (this.#flushing.length > 0) this.#flushQuietly();
  }

  #revert(): void {
    this.#isOpen = false;
    this.#owner = undefined;
    this.#gate.transactionRolledBack();
    for (const participant of this.#participants) participant.afterRollback?.();
  }

  /** Nothing to wait for, unless a segment is open: then the batch is committed when it ends. */
  #flush(): void | Promise<void> {
    if (!this.#isOpen) return this.#commitBatch();
    return new Promise((resolve, reject) => this.#flushing.push({ resolve, reject }));
  }

  /** A batch that no output waits for: the runtime's own work, or a turn that is at an await. */
  #flushUnlessDue(): void {
    if (this.#isOpen || this.#gate.isSyncDue) return;
    const turn = this.#lastOwner;
    const isAlone = this.#batched === 1;
    try {
      this.#commitBatch(!isAlone);
    } catch (error) {
      if (isAlone && turn?.phase === "running") turn.doom = error as Error;
    }
  }

  #flushQuietly(): void {
    try {
      this.#commitBatch();
    } catch {
      // Told through onCommitFailure and, when an output asks for a sync, through the gate.
    }
  }

  /** Throws when it fails; nothing can be written after that if it `isFinal`. */
  #commitBatch(isFinal = true): void {
    if (this.#failure !== null) throw this.#failure;
    if (this.#batched > 0) {
      try {
        this.#database.commit();
      } catch (cause) {
        throw this.#fail(cause, isFinal);
      }
      this.#batched = 0;
      this.#lastOwner = undefined;
    }
    for (const { resolve } of this.#flushing.splice(0)) resolve();
  }

  /** True when a segment's commit cannot fail for what the segment wrote, so that it may share one with others. */
  #canShare(): boolean {
    const { tableChanges } = this.#database;
    if (tableChanges !== this.#tableChanges) {
      this.#tableChanges = tableChanges;
      this.#hasDeferrable = this.#database.get(DEFERRABLE) !== undefined;
    }
    return !this.#hasDeferrable;
  }

  #fail(cause: unknown, isFinal: boolean): Error {
    // Storage that is away for a while says so itself, and callers should hear it.
    const error =
      cause instanceof SignalboxError
        ? cause
        : new Error("the instance's storage refused the commit", { cause });
    if (isFinal) this.#failure = error;
    this.#batched = 0;
    this.#lastOwner = undefined;
    this.#database.rollback();
    if (this.#isOpen) this.#revert();
    for (const { reject } of this.#flushing.splice(0)) reject(error);
    this.#onCommitFailure(error);
    return error;
  }
}
