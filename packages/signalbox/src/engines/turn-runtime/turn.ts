import { AsyncLocalStorage } from "node:async_hooks";

/**
 * One turn: a function that runs on a subject, from the queue to its end.
 *
 *   waiting → running → done | failed | timed-out
 *
 * A running turn starts on the stack of the runtime. When its function returns a promise, the turn leaves the stack and continues whenever
 * an await resumes. A turn that exceeds its time limit is `timed-out`: its caller has received the error, and its code can no longer write.
 */
export type TurnPhase = "waiting" | "running" | "done" | "failed" | "timed-out";

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
  /** Work of the runtime's owner itself: it is never refused because the queue is full, and its outcome does not wait for a sync. */
  readonly isInternal?: boolean;
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
  readonly afterFailure: ((error: unknown) => void) | null;
  readonly onOutcome: ((error: unknown, value: T | undefined) => void) | null;
  /** Null once the turn runs, so that what only the function references can be collected while the turn waits for its sync. */
  body: TurnSpec<Subject, T>["body"] | null;
  phase: TurnPhase = "waiting";
  /** True while the function runs on the runtime's stack: the runtime ends the segment when the function returns. */
  isOnStack = false;
  startedAt = 0;
  timer: NodeJS.Timeout | undefined;
  /** Set when a commit between two awaits failed: the turn fails whatever its function returns. */
  commitError: Error | null = null;
  #followUps: Promise<unknown>[] | null = null;

  constructor(
    owner: object,
    spec: TurnSpec<Subject, T>,
    chain: readonly string[],
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.owner = owner;
    this.kind = spec.kind;
    this.label = spec.label;
    this.isInternal = spec.isInternal ?? false;
    this.afterFailure = spec.afterFailure ?? null;
    this.onOutcome = spec.onOutcome ?? null;
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

  /** Throws when the turn may not write any more (invariant 6 of the README). */
  requireWritable(): void {
    if (this.phase === "timed-out") throw new TurnTimeoutError();
    if (this.commitError !== null) throw this.commitError;
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

/** Runs work that belongs to no turn: the start of the next turn, timers of the runtime. */
export function runOutsideTurns<T>(work: () => T): T {
  return store.exit(work);
}
