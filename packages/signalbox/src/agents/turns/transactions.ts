/**
 * Opens and ends an instance's transactions, so that agents' code never does.
 *
 * The first write of a segment opens a transaction. A segment is what a turn does without giving the event loop back: its function
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
 */
import type { InstanceDatabase } from "../../storage/ports/instance-store.ts";
import { currentTurn } from "./current-turn.ts";
import type { OutputGate } from "./output-gate.ts";
import type { Turn } from "./turn.ts";

export interface Participant {
  /** Last chance to write inside the transaction. */
  beforeCommit?(): void;
  afterCommit?(): void;
  afterRollback?(): void;
}

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

  constructor(database: InstanceDatabase, gate: OutputGate, onCommitFailure: (error: Error) => void) {
    this.#database = database;
    this.#gate = gate;
    this.#onCommitFailure = onCommitFailure;
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
    this.#database.begin();
    this.#isOpen = true;
    this.#owner = turn;
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

  /** Commits what the running code has open, so that it stays even if the process ends at once. */
  commitNow(): void {
    if (!this.#isOpen || this.#owner !== currentTurn()) return;
    this.#commit();
    this.#database.secure();
  }

  /** Ends whatever is open before the database closes. */
  finish(): void {
    if (this.#isOpen) this.#endSegment();
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
      this.#database.commit();
    } catch (cause) {
      this.#rollback();
      const error = new Error("the instance's storage refused the commit", { cause });
      this.#onCommitFailure(error);
      throw error;
    }
    this.#isOpen = false;
    this.#owner = undefined;
    this.#gate.transactionCommitted();
    for (const participant of this.#participants) participant.afterCommit?.();
  }

  #rollback(): void {
    this.#database.rollback();
    this.#isOpen = false;
    this.#owner = undefined;
    this.#gate.transactionRolledBack();
    for (const participant of this.#participants) participant.afterRollback?.();
  }
}
