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
  /** Code that learns only in the turn what the turn is about may set it, like `cause`. */
  label: string;
  /** Keys of this turn's runtime and of those that wait for the turn; a call back into one of them would never return. */
  readonly chain: readonly string[];
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
  readonly isInternal: boolean;
  readonly isConcurrent: boolean;
  /** Undefined for the limit of the runtime; 0 for none. */
  readonly timeoutMs: number | undefined;
  readonly life: RuntimeLife;
  cause: object | null;
  /** What an observer keeps with the turn until its end; undefined for nothing. */
  note: unknown = undefined;
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
