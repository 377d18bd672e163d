import { AsyncLocalStorage } from "node:async_hooks";
import { afterMicrotasks } from "./after-microtasks.ts";

/**
 * One turn: a function that runs on a subject, from the queue to its end.
 *
 *   waiting → running → done | failed | timed-out | abandoned
 *
 * A running turn starts on the stack of the runtime. When its function returns a promise, the turn leaves the stack and continues whenever
 * an await resumes. A turn that exceeds its time limit is `timed-out`, and a turn whose runtime ended before it is `abandoned`: its caller has
 * received the error, and its code can no longer write.
 */
export type TurnPhase = "waiting" | "running" | "done" | "failed" | "timed-out" | "abandoned";

/** Whether the runtime of a turn still exists; shared by all its turns. */
export interface RuntimeLife {
  /** Creates the error for code that outlived the runtime; null while the runtime exists. A function: a stack trace is expensive. */
  gone: (() => Error) | null;
}

/** A turn as the caller describes it. */
export interface TurnSpec<Subject, T> {
  /** For metrics and logs. */
  readonly kind: string;
  /** What the turn is about, for people: a method, a path, an id. */
  readonly label: string;
  readonly body: (subject: Subject) => T | Promise<T>;
  /** Keys of the runtimes whose turns wait for this turn. */
  readonly callers?: readonly string[];
  /** Runs after the rollback of a failed turn. It may write; its writes are a transaction of their own. */
  readonly afterFailure?: (error: unknown) => void;
  /**
   * Receives the outcome when the output gate releases it. What the callback sends directly keeps its place among the outputs of the
   * turn; code that awaits the promise of `run` continues later.
   */
  readonly onOutcome?: ((error: unknown, value: T | undefined) => void) | undefined;
  /** Who or what caused the turn. */
  readonly origin?: TurnOrigin | undefined;
  /** The object that the turn handles, for observers of turns. */
  readonly cause?: object | undefined;
  /** Work of the runtime's owner itself: it is never refused because the queue is full, and its outcome does not wait for a sync. */
  readonly isInternal?: boolean;
  /** The turn starts while others are at an await, ahead of those that wait, and no other turn waits for its end. */
  readonly isConcurrent?: boolean | undefined;
  /** The time limit of this turn in place of the runtime's; 0 for none. */
  readonly timeoutMs?: number;
}

/** The cause of a turn, for the code that runs in it. The engine knows one member. */
export interface TurnOrigin {
  /** Throws when the turn must not write: asked before each transaction of the turn, also after its end. */
  requireWritable?(): void;
}

export class TurnTimeoutError extends Error {
  override readonly name = "TurnTimeoutError";

  constructor() {
    super("the turn exceeded its time limit and can no longer write");
  }
}

export class Turn<Subject = unknown, T = unknown> {
  /** The object that the runtime was created for. */
  readonly owner: object;
  readonly kind: string;
  readonly label: string;
  /** Keys of this turn's runtime and of those that wait for the turn; a call back into one of them would never return. */
  readonly chain: readonly string[];
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
  readonly isInternal: boolean;
  readonly isConcurrent: boolean;
  /** Undefined for the limit of the runtime; 0 for none. */
  readonly timeoutMs: number | undefined;
  readonly life: RuntimeLife;
  readonly cause: object | null;
  readonly afterFailure: ((error: unknown) => void) | null;
  readonly onOutcome: ((error: unknown, value: T | undefined) => void) | null;
  origin: TurnOrigin | null;
  /** Null once the turn runs, so that what only the function references can be collected while the turn waits for its sync. */
  body: TurnSpec<Subject, T>["body"] | null;
  phase: TurnPhase = "waiting";
  /** True while the function runs on the runtime's stack: the runtime ends the segment when the function returns. */
  isOnStack = false;
  /** True when the turn has left the stack: then it is in the runtime's list of such turns, with these neighbours. */
  isAway = false;
  older: Turn | null = null;
  newer: Turn | null = null;
  startedAt = 0;
  timer: NodeJS.Timeout | undefined;
  /** Set when a commit between two awaits failed: the turn fails whatever its function returns. */
  commitError: Error | null = null;
  /** Number of the batch that has the turn's first segment; null before. */
  firstBatch: number | null = null;
  #followUps: Promise<unknown>[] | null = null;

  constructor(
    owner: object,
    spec: TurnSpec<Subject, T>,
    chain: readonly string[],
    life: RuntimeLife,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.owner = owner;
    this.life = life;
    this.kind = spec.kind;
    this.label = spec.label;
    this.isInternal = spec.isInternal ?? false;
    this.isConcurrent = spec.isConcurrent ?? false;
    this.timeoutMs = spec.timeoutMs;
    this.cause = spec.cause ?? null;
    this.afterFailure = spec.afterFailure ?? null;
    this.onOutcome = spec.onOutcome ?? null;
    this.origin = spec.origin ?? null;
    this.body = spec.body;
    this.chain = chain;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Makes the turn end only after the promise has settled; its outcome does not change that of the turn. */
  waitFor(followUp: Promise<unknown>): void {
    (this.#followUps ??= []).push(followUp);
  }

  get hasFollowUps(): boolean {
    return this.#followUps !== null;
  }

  /** The promises passed to `waitFor` since the last call; null when there are none. */
  takeFollowUps(): readonly Promise<unknown>[] | null {
    const followUps = this.#followUps;
    this.#followUps = null;
    return followUps;
  }

  get isWriteAllowed(): boolean {
    try {
      this.requireWritable();
      return true;
    } catch {
      return false;
    }
  }

  /** Throws when the turn may not write any more (invariant 6 of the README). */
  requireWritable(): void {
    if (this.life.gone !== null) throw this.life.gone();
    if (this.phase === "timed-out") throw new TurnTimeoutError();
    if (this.commitError !== null) throw this.commitError;
    this.origin?.requireWritable?.();
  }
}

/*
 * The turn that the running code belongs to. The answer follows promises and timers, so code that outlives its turn is still known as that
 * turn's code.
 *
 * The store is a property of `globalThis` under a registered symbol: a module that another loader loaded (a test runner's, for example)
 * has its own copy of this file and must find the same store.
 */

const KEY = Symbol.for("signalbox.current-turn");
const holder = globalThis as { [KEY]?: AsyncLocalStorage<Turn> };

const store = (holder[KEY] ??= new AsyncLocalStorage<Turn>());

export function currentTurn(): Turn | undefined {
  return store.getStore();
}

export function runInTurn<Subject, T>(turn: Turn, work: (subject: Subject) => T, subject: Subject): T {
  return store.run(turn, work, subject);
}

/** Throws when the running code belongs to a turn whose runtime has ended: such code can no longer send. */
export function requirePresent(): void {
  const gone = store.getStore()?.life.gone;
  if (gone !== undefined && gone !== null) throw gone();
}

/** Runs work that belongs to no turn: the start of the next turn, timers of the runtime. */
export function runOutsideTurns<T>(work: () => T): T {
  return store.exit(work);
}

/*
 * The queue of turns: which turn starts next, and when. It runs no turn itself and knows nothing of transactions.
 *
 * It keeps invariants 1 and 7 of the README: one turn at a time in order of arrival (or overlapping turns, if the owner opted in), and a
 * bounded queue. Concurrent turns have a queue of their own, which the others do not see. While the mailbox is blocked, no turn starts.
 */

/** Turns that end without waiting run this many in a row before other work gets the event loop. */
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
    if (this.#options.isInterleaving || this.#runningConcurrent > 0) this.#drainLater(queueMicrotask);
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
      if (!this.#isDraining) this.#drainLater(queueMicrotask);
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
