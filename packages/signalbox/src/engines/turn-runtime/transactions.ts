/**
 * Opens and ends the transactions of turns, so that the code of a turn never does (invariants 2, 3, 5 and 6 of the README).
 *
 * A segment is what a turn does without a real wait: its function up to the first await that waits, then from each such await to the next.
 * An await of something that is already settled does not end a segment. The first write of a segment opens its transaction; the end of the
 * turn, or an empty microtask queue, ends it. Segments share SQLite transactions (`CommitBatch`).
 *
 * A batch is committed by `commitBatch` when the output gate is about to sync, before a segment that does not fit, at `commitNow`, and in the
 * next iteration of the event loop if no sync is due.
 * See docs/decisions/0020 and docs/decisions/0053.
 */
import { SignalboxError } from "@signalbox/protocol";
import { afterMicrotasks } from "./after-microtasks.ts";
import { CommitBatch } from "./commit-batch.ts";
import { currentTurn } from "./current-turn.ts";
import type { OutputGate } from "./output-gate.ts";
import type { Turn } from "./turn.ts";
import type { TurnDatabase } from "./turn-database.ts";

/** Keeps a copy in memory of something stored: it writes before a commit and reverts after a rollback. */
export interface Participant {
  /** The last chance to write inside the transaction. */
  beforeCommit?(): void;
  afterCommit?(): void;
  afterRollback?(): void;
}

interface Segment {
  /** Undefined for code outside of turns. */
  readonly turn: Turn | undefined;
}

export class Transactions {
  readonly #database: TurnDatabase;
  readonly #batch: CommitBatch;
  readonly #outputs: OutputGate;
  readonly #onFailure: (error: Error) => void;
  #participants: readonly Participant[] = [];
  #segment: Segment | null = null;
  /** The turn of the batch's last segment. */
  #lastWriter: Turn | undefined;
  #failure: Error | null = null;
  /** Set when code keeps its segment open over awaits. */
  #isHeld = false;
  /** Creates the error for code that writes after the close; null before. */
  #closed: (() => Error) | null = null;

  /** `onFailure` is called whenever SQLite refuses a commit or a rollback. */
  constructor(database: TurnDatabase, outputs: OutputGate, onFailure: (error: Error) => void) {
    this.#database = database;
    this.#batch = new CommitBatch(database);
    this.#outputs = outputs;
    this.#onFailure = onFailure;
  }

  join(participant: Participant): void {
    this.#participants = [...this.#participants, participant];
  }

  /** May be called by a participant during a commit: the commit still calls those that had joined when it began. */
  leave(participant: Participant): void {
    this.#participants = this.#participants.filter((one) => one !== participant);
  }

  get isOpen(): boolean {
    return this.#segment !== null;
  }

  /** True while code keeps its segment open over awaits. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** True if SQLite has committed something that the turn wrote: it may be, or become, durable. */
  mayBeStored(turn: Turn): boolean {
    return turn.firstBatch !== null && turn.firstBatch < this.#batch.commits;
  }

  /** Must be called before every write. Throws when the running code may not write any more. */
  open(): void {
    const turn = currentTurn();
    turn?.requireWritable();
    this.requirePresent();
    if (this.#segment !== null) {
      if (this.#segment.turn === turn || this.#isHeld) return;
      // Other code runs, so the turn of the open segment is at an await.
      this.#endWithoutCaller(this.#segment);
    }
    if (this.#failure !== null) throw this.#failure;
    if (this.#batch.isFull) this.#commitFull(turn);
    this.#batch.beginSegment();
    if (this.#batch.size === 1) setImmediate(() => this.#commitUnlessSyncDue());
    const segment = { turn };
    this.#segment = segment;
    this.#lastWriter = turn;
    this.#outputs.transactionOpened();
    if (turn?.isOnStack !== true) this.#scheduleEnd(segment);
  }

  /**
   * Opens a segment that stays open over awaits until the returned function is called. Code of other turns that writes in the meantime takes
   * part in it, so the caller lets no other turn run. A second hold joins the first. If the runtime ends first, the segment is rolled back.
   */
  hold(): () => void {
    this.open();
    if (this.#isHeld) return () => undefined;
    this.#isHeld = true;
    const segment = this.#segment;
    return () => {
      if (!this.#isHeld || this.#segment !== segment) return;
      this.#isHeld = false;
      if (segment !== null) this.#scheduleEnd(segment);
      setImmediate(() => this.#commitUnlessSyncDue());
    };
  }

  /** The function of the turn has returned a promise. */
  turnLeftStack(turn: Turn): void {
    if (this.#segment !== null && this.#segment.turn === turn) this.#scheduleEnd(this.#segment);
  }

  /** Ends the open segment of the turn, if any. Throws, after a rollback, when SQLite refuses it. */
  commit(turn: Turn): void {
    if (this.#segment !== null && this.#segment.turn === turn && !this.#isHeld) this.#endSegment();
  }

  rollback(turn: Turn): void {
    if (this.#segment !== null && this.#segment.turn === turn) this.#rollbackSegment();
  }

  /** Rolls back what the running code has open; its turn continues. */
  undo(): void {
    if (this.#segment !== null && this.#segment.turn === currentTurn()) this.#rollbackSegment();
  }

  /** Commits what the running code has open, so that it survives the end of the process: at once (null), or when the promise resolves. */
  commitNow(): Promise<void> | null {
    if (this.#segment === null || this.#segment.turn !== currentTurn()) return null;
    this.#endSegment();
    this.commitBatch();
    return this.#database.flush();
  }

  /** Throws when the runtime has ended: the database is, or will be, closed. */
  requirePresent(): void {
    if (this.#closed !== null) throw this.#closed();
  }

  /** Lets nothing be written any more but what `finish` commits. */
  close(gone: () => Error): void {
    this.#closed = gone;
  }

  /** Rolls back the open segment, whichever turn opened it. */
  rollbackOpen(): void {
    if (this.#segment !== null) this.#rollbackSegment();
  }

  /** Commits everything that is open before the database closes. Failures are reported to `onFailure`. */
  finish(): void {
    if (this.#isHeld) this.#rollbackSegment();
    if (this.#segment !== null) this.#endWithoutCaller(this.#segment);
    try {
      this.commitBatch();
    } catch {
      // Reported by `#fail`; no output of the batch has left.
    }
  }

  /** Commits the batch. The caller has seen that no segment is open. After a failure, of a sync too, nothing can be written any more (invariant 5). */
  commitBatch(): void {
    if (this.#failure !== null) throw this.#failure;
    try {
      this.#batch.commit();
    } catch (cause) {
      throw this.#fail(cause, true);
    }
    this.#lastWriter = undefined;
  }

  /** A sync failed. What SQLite has not committed is discarded: it cannot be acknowledged any more. */
  giveUp(error: Error): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    this.#lastWriter = undefined;
    this.#batch.discard();
    if (this.#segment !== null) this.#revert();
  }

  /** For a batch that no output waits for: internal work, or a turn that is at an await. */
  #commitUnlessSyncDue(): void {
    if (this.#segment !== null || this.#failure !== null || this.#outputs.isSyncDue) return;
    this.#commitEarly();
  }

  /** Before a segment that does not fit into the batch. Throws if that is a later segment of a turn whose earlier one SQLite refuses. */
  #commitFull(turn: Turn | undefined): void {
    this.#commitEarly();
    if (this.#failure !== null) throw this.#failure;
    turn?.requireWritable();
  }

  /** A segment that is alone in its batch, and whose turn still runs, fails alone: with the turn. */
  #commitEarly(): void {
    const turn = this.#lastWriter;
    const isAlone = this.#batch.size === 1;
    try {
      this.#batch.commit();
      this.#lastWriter = undefined;
    } catch (cause) {
      const error = this.#fail(cause, !isAlone);
      if (isAlone && turn?.phase === "running") turn.commitError = error;
    }
  }

  #scheduleEnd(segment: Segment): void {
    afterMicrotasks(() => {
      if (this.#segment === segment && !this.#isHeld) this.#endWithoutCaller(segment);
    });
  }

  /** Ends a segment where no caller can receive an error: the turn that wrote fails later. */
  #endWithoutCaller({ turn }: Segment): void {
    try {
      this.#endSegment();
    } catch (error) {
      if (turn !== undefined) turn.commitError = error as Error;
    }
  }

  #endSegment(): void {
    const isShared = this.#batch.size > 1;
    const { commits } = this.#batch;
    try {
      for (const participant of this.#participants) participant.beforeCommit?.();
      this.#batch.endSegment();
    } catch (cause) {
      throw this.#fail(cause, isShared);
    }
    const turn = this.#segment?.turn;
    if (turn !== undefined) turn.firstBatch ??= commits;
    this.#segment = null;
    this.#outputs.transactionCommitted();
    for (const participant of this.#participants) participant.afterCommit?.();
  }

  #rollbackSegment(): void {
    try {
      this.#batch.rollbackSegment();
    } catch (cause) {
      // SQLite has rolled back the whole transaction by itself (disk full, I/O error), and with it the segments of other turns.
      this.#fail(cause, true);
      return;
    }
    this.#revert();
  }

  #revert(): void {
    this.#segment = null;
    this.#isHeld = false;
    this.#outputs.transactionRolledBack();
    for (const participant of this.#participants) participant.afterRollback?.();
  }

  /** Discards the batch. `isFinal` when that took segments away whose turns have ended. */
  #fail(cause: unknown, isFinal: boolean): Error {
    // A `SignalboxError` (storage that is unavailable for a while) is meant for callers.
    const error =
      cause instanceof SignalboxError ? cause : new Error("the database refused the commit", { cause });
    if (isFinal) this.#failure = error;
    this.#lastWriter = undefined;
    this.#batch.discard();
    if (this.#segment !== null) this.#revert();
    this.#onFailure(error);
    return error;
  }
}
