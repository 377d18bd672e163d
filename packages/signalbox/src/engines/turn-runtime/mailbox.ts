/**
 * The queue of turns: which turn starts next, and when. It runs no turn itself and knows nothing of transactions.
 *
 * It keeps invariants 1 and 7 of the README: one turn at a time in order of arrival (or overlapping turns, if the owner opted in), and a
 * bounded queue. Concurrent turns have a queue of their own, which the others do not see. While the mailbox is blocked, no turn starts.
 */
import { afterMicrotasks } from "./after-microtasks.ts";
import type { Turn } from "./turn.ts";

/** This many turns start in a row before other work gets the event loop. */
const MAX_CONSECUTIVE = 64;
/** The array of waiting turns is compacted when this many of its first entries have started. */
const MAX_STARTED_ENTRIES = 1024;

export interface MailboxOptions {
  readonly maxWaiting: number;
  readonly isInterleaving: boolean;
  /** Creates the error for a turn that the full queue refuses. */
  readonly createOverloadError: () => unknown;
  readonly start: (turn: Turn) => void;
  /** No turn runs or waits. */
  readonly onIdle: () => void;
}

export class Mailbox {
  readonly #options: MailboxOptions;
  #waiting: Turn[] = [];
  /** Index of the first waiting turn. */
  #head = 0;
  /** Concurrent turns that wait; null for none, which is the rule. */
  #concurrent: Turn[] | null = null;
  #running = 0;
  /** Running turns that are concurrent. */
  #runningConcurrent = 0;
  /** How many callers of `block` have not unblocked. */
  #blocks = 0;
  #isOpen = false;
  /** True while turns are being started, or when a start is scheduled: `add` need not start anything then. */
  #isDraining = false;
  /** Overlapping turns that have started since other work had the event loop. */
  #startedInRow = 0;
  /** Creates the error for turns after the close. A function: most mailboxes close unobserved, and a stack trace is expensive. */
  #closeReason: (() => unknown) | null = null;
  #onQuiet: (() => void)[] = [];

  constructor(options: MailboxOptions) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#running === 0 && this.waitingCount === 0;
  }

  get waitingCount(): number {
    return this.#waiting.length - this.#head + (this.#concurrent?.length ?? 0);
  }

  add(turn: Turn): void {
    if (this.#closeReason !== null) {
      turn.reject(this.#closeReason());
      return;
    }
    if (this.waitingCount >= this.#options.maxWaiting && !turn.isInternal) {
      turn.reject(this.#options.createOverloadError());
      return;
    }
    if (turn.isConcurrent) {
      this.#addConcurrent(turn);
      return;
    }
    this.#waiting.push(turn);
    if (!this.#isOpen || this.#isDraining) return;
    // A turn must not start on the stack of another one, which is in the middle of its segment: an interleaving turn, or a concurrent one whose
    // commit has caused this turn.
    if (this.#options.isInterleaving) this.#drainLater(afterMicrotasks);
    else if (this.#runningConcurrent > 0) this.#drainLater(queueMicrotask);
    else this.#drain();
  }

  /** Starts a turn ahead of the waiting ones, whether or not the mailbox is open. */
  startFirst(turn: Turn): void {
    this.#running += 1;
    if (turn.isConcurrent) this.#runningConcurrent += 1;
    this.#options.start(turn);
  }

  open(): void {
    this.#isOpen = true;
    this.#drainConcurrent();
    this.#drain();
  }

  /** Lets no turn start until the returned function is called; running turns continue. */
  block(): () => void {
    this.#blocks += 1;
    let isBlocked = true;
    return () => {
      if (!isBlocked) return;
      isBlocked = false;
      this.#blocks -= 1;
      if (this.#blocks > 0 || !this.#isOpen) return;
      this.#drainConcurrent();
      if (!this.#isDraining)
        this.#drainLater(this.#options.isInterleaving ? afterMicrotasks : queueMicrotask);
    };
  }

  /** The turn has ended: the next one starts, unless the loop that started this turn is about to start it. */
  turnEnded(turn: Turn): void {
    this.#running -= 1;
    if (turn.isConcurrent) this.#runningConcurrent -= 1;
    if (this.#running === 0) for (const resolve of this.#onQuiet.splice(0)) resolve();
    if (this.#isOpen && !this.#isDraining) this.#drain();
  }

  /** Refuses every waiting and later turn. Running turns continue. */
  close(reason: () => unknown): void {
    this.#closeReason = reason;
    const waiting = [...this.#waiting.slice(this.#head), ...(this.#concurrent ?? [])];
    this.#waiting = [];
    this.#concurrent = null;
    this.#head = 0;
    for (const turn of waiting) turn.reject(reason());
  }

  /** Resolves when no turn runs. */
  whenQuiet(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onQuiet.push(resolve));
  }

  #drain(): void {
    if (this.#options.isInterleaving) {
      this.#startOne();
      return;
    }
    this.#isDraining = true;
    let count = 0;
    while (this.#waiting.length > this.#head && this.#mayStart) {
      if (count === MAX_CONSECUTIVE) {
        this.#drainLater(setImmediate);
        return;
      }
      count += 1;
      const turn = this.#takeFirst();
      this.#running += 1;
      this.#options.start(turn);
    }
    this.#isDraining = false;
    if (this.isIdle) this.#options.onIdle();
  }

  /**
   * Overlapping turns start one by one, each when the microtasks of the one before have run: code that awaits nothing but microtasks is one event,
   * not a part of several. All of them are in one iteration of the event loop, so they still share a commit.
   */
  #startOne(): void {
    this.#isDraining = true;
    if (this.#waiting.length > this.#head && this.#mayStart) {
      this.#startedInRow += 1;
      const turn = this.#takeFirst();
      this.#running += 1;
      this.#options.start(turn);
      if (this.#startedInRow < MAX_CONSECUTIVE) this.#drainLater(afterMicrotasks);
      else {
        this.#startedInRow = 0;
        this.#drainLater(setImmediate);
      }
      return;
    }
    this.#startedInRow = 0;
    this.#isDraining = false;
    if (this.isIdle) this.#options.onIdle();
  }

  get #mayStart(): boolean {
    if (this.#blocks > 0) return false;
    return this.#running === this.#runningConcurrent || this.#options.isInterleaving;
  }

  /** A concurrent turn starts when the microtask queue is empty: then no other turn is in the middle of its segment. */
  #addConcurrent(turn: Turn): void {
    if (this.#concurrent === null) {
      this.#concurrent = [];
      afterMicrotasks(() => this.#drainConcurrent());
    }
    this.#concurrent.push(turn);
  }

  #drainConcurrent(): void {
    const turns = this.#concurrent;
    if (turns === null || !this.#isOpen || this.#blocks > 0) return;
    this.#concurrent = null;
    for (const turn of turns) {
      this.#running += 1;
      this.#runningConcurrent += 1;
      this.#options.start(turn);
    }
  }

  #drainLater(schedule: (callback: () => void) => unknown): void {
    this.#isDraining = true;
    schedule(() => this.#drain());
  }

  #takeFirst(): Turn {
    const turn = this.#waiting[this.#head] as Turn;
    this.#head += 1;
    if (this.#head === this.#waiting.length) {
      // Emptied in place: a new array for every event would outlive a collection of young objects.
      while (this.#waiting.length > 0) this.#waiting.pop();
      this.#head = 0;
    } else if (this.#head > MAX_STARTED_ENTRIES) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    return turn;
  }
}
