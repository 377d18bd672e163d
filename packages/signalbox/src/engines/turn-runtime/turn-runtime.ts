/**
 * Runs the turns of one subject on one database. Every turn passes four steps, and this file is the place where their order is written:
 *
 *   1. run      `#run`: the turn's function runs. Its first write opens a transaction (`Transactions`); its outputs are held (`OutputGate`).
 *   2. commit   `#end`: the function has returned, so its last segment is committed, or rolled back if the function threw. A rollback
 *               drops the outputs of the segment. The turn's outcome becomes an output like the others. (A segment that ends at an await
 *               is committed in the same way, by `Transactions`.)
 *   3. sync     `#sync`: in the next iteration of the event loop SQLite commits what the turns since then have in common, and the
 *               database makes it durable.
 *   4. release  `OutputGate`: what waited for that sync leaves, in order of production; the caller receives the outcome.
 *
 *   new ─ open(database) → start(subject, first) → running ─ close(reason) → closed ─ finish(gone) → gone
 *
 * Turns can be queued from the beginning; they start when the first turn has succeeded. `abandon` ends running turns without waiting for them.
 * The README states the invariants.
 */
import { RecencyList } from "../../core/recency-list.ts";
import { afterMicrotasks } from "./after-microtasks.ts";
import { runInTurn, runOutsideTurns } from "./current-turn.ts";
import { Mailbox } from "./mailbox.ts";
import { type Output, OutputGate } from "./output-gate.ts";
import { Transactions } from "./transactions.ts";
import { type RuntimeLife, Turn, type TurnPhase, type TurnSpec } from "./turn.ts";
import type { TurnDatabase } from "./turn-database.ts";

/** How often an observer looks whether an open segment has ended. */
const OBSERVE_AGAIN_MS = 10;

export interface TurnRuntimeOptions {
  /** The object that the runtime belongs to; code that runs in a turn finds it through `currentTurn`. */
  readonly owner: object;
  /** Names the runtime in the chains of calls between runtimes. */
  readonly key: string;
  /** Turns that may wait. */
  readonly maxWaiting: number;
  /** A turn that takes longer is timed out; 0 for no limit. A function that never returns to the event loop cannot be interrupted. */
  readonly timeoutMs: number;
  /** A turn that fails keeps what it wrote, as after any await; default false: its open segment is rolled back. */
  readonly keepsFailedWrites?: boolean;
  /** Lets a turn start while others are at an await. */
  readonly isInterleaving: boolean;
  /** Creates the error for a turn that the full queue refuses. */
  readonly createOverloadError: () => unknown;
  /** Creates the error for the caller of a turn that exceeded `timeoutMs`. */
  readonly createTimeoutError: (timeoutMs: number) => unknown;
  /** The error for the caller of a turn that failed although SQLite has committed a part of what it wrote. Default: the error itself. */
  readonly explainPartial?: (turn: Turn, error: unknown) => unknown;
  /** A turn has ended; `error` is null when it succeeded. Its outcome may still wait for the sync. */
  readonly onTurnEnd: (turn: Turn, error: unknown) => void;
  /** No turn runs or waits, or no output waits any more; `isIdle` is true when both hold. */
  readonly onIdle: () => void;
  /** SQLite refused a commit. The writes are rolled back, and no output that depends on them leaves. */
  readonly onCommitFailure: (error: Error) => void;
}

interface OpenParts {
  readonly transactions: Transactions;
  readonly outputs: OutputGate;
  readonly sync: () => Promise<void>;
}

export class TurnRuntime<Subject> {
  readonly #options: TurnRuntimeOptions;
  readonly #chain: readonly string[];
  readonly #mailbox: Mailbox;
  /** Turns that are at an await, or about to continue from one. A list, because a set would give each turn a hash. */
  readonly #away = new RecencyList<Turn>();
  readonly #life: RuntimeLife = { gone: null };
  #parts: OpenParts | null = null;
  #subject: Subject | undefined;
  #holds = 0;
  #hasAbandoned = false;

  constructor(options: TurnRuntimeOptions) {
    this.#options = options;
    this.#chain = [options.key];
    this.#mailbox = new Mailbox({
      maxWaiting: options.maxWaiting,
      isInterleaving: options.isInterleaving,
      createOverloadError: options.createOverloadError,
      start: (turn) => this.#run(turn),
      onIdle: options.onIdle,
    });
  }

  get transactions(): Transactions {
    return this.#open.transactions;
  }

  get outputs(): OutputGate {
    return this.#open.outputs;
  }

  get waitingCount(): number {
    return this.#mailbox.waitingCount;
  }

  /** True if turns ended before their code, or something still holds the runtime. */
  get wasInterrupted(): boolean {
    return this.#hasAbandoned || this.#holds > 0;
  }

  /** True when no turn runs or waits, nothing holds the runtime, no transaction is open and no output waits. */
  get isIdle(): boolean {
    if (this.#holds > 0) return false;
    const parts = this.#parts;
    return this.#mailbox.isIdle && (parts === null || (parts.outputs.isIdle && !parts.transactions.isOpen));
  }

  /**
   * Connects the database. `sync` makes every commit before the call durable; after a failure the runtime releases no output any more. `confirm` is
   * that of `OutputGateOptions`.
   */
  open(database: TurnDatabase, sync: () => Promise<void>, confirm?: () => Promise<void> | null): void {
    const outputs = new OutputGate({
      sync: () => this.#sync(),
      confirm,
      onIdle: this.#options.onIdle,
      onFailure: (error) => transactions.giveUp(error),
    });
    const transactions = new Transactions(database, outputs, this.#options.onCommitFailure);
    this.#parts = { transactions, outputs, sync };
  }

  /** Runs the first turn, ahead of those that wait. Rejects when it fails: then no other turn ever starts. */
  async start(subject: Subject, first: TurnSpec<Subject, void>): Promise<void> {
    this.#subject = subject;
    await new Promise<void>((resolve, reject) =>
      this.#mailbox.startFirst(this.#createTurn(first, resolve, reject)),
    );
    this.#mailbox.open();
  }

  /** Queues a turn. Resolves with the result of its function when everything that the turn wrote and read is durable. */
  run<T>(spec: TurnSpec<Subject, T>): Promise<T> {
    return new Promise<T>((resolve, reject) => this.#mailbox.add(this.#createTurn(spec, resolve, reject)));
  }

  /** The turn at an await that started first; null if none runs. */
  get runningTurn(): Turn | null {
    return this.#away.oldestFirst().next().value ?? null;
  }

  /**
   * Reads what is committed without waiting for turns: between their segments, while they are at an await (invariant 14). Resolves when everything that
   * was read is durable. `isLong` is asked while code holds a segment open over awaits, whose writes must not be read: it throws to give up.
   */
  observe<T>(work: (subject: Subject) => T, isLong: (waitedMs: number) => void): Promise<T> {
    const startedAt = performance.now();
    return new Promise<T>((resolve, reject) => {
      const attempt = () => {
        try {
          const { transactions, outputs } = this.#open;
          transactions.requirePresent();
          if (!transactions.isOpen) {
            const value = work(this.#subject as Subject);
            outputs.send({ release: () => resolve(value), drop: reject });
            return;
          }
          isLong(performance.now() - startedAt);
          setTimeout(() => afterMicrotasks(attempt), OBSERVE_AGAIN_MS);
        } catch (error) {
          reject(error);
        }
      };
      runOutsideTurns(() => afterMicrotasks(attempt));
    });
  }

  /** Keeps `isIdle` false until the returned function is called: for work that goes on outside of turns. */
  hold(): () => void {
    this.#holds += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds -= 1;
      if (this.isIdle) this.#options.onIdle();
    };
  }

  /** Lets no turn start until the returned function is called; running turns continue. */
  block(): () => void {
    return this.#mailbox.block();
  }

  /** Refuses every waiting and later turn with the reason. Running turns continue. */
  close(reason: () => unknown): void {
    this.#mailbox.close(reason);
  }

  /** Resolves when no turn runs and every output has left or was dropped. */
  async whenQuiet(): Promise<void> {
    await this.#mailbox.whenQuiet();
    await this.#parts?.outputs.whenEmpty();
  }

  /**
   * Fails all turns at once: those that wait, and those at an await, whose code can neither write nor send from now on. The open segment is rolled
   * back. The turn on the stack, if any, continues until it returns.
   */
  abandon(reason: () => Error): void {
    this.#mailbox.close(reason);
    this.#parts?.transactions.rollbackOpen();
    for (const turn of this.#away.oldestFirst()) {
      clearTimeout(turn.timer);
      this.#hasAbandoned = true;
      this.#end(turn, "abandoned", reason());
    }
    this.#silence(reason);
  }

  /** Commits what is open; the owner closes the database next. Code that outlives the runtime receives the error when it writes or sends. */
  finish(gone: () => Error): void {
    this.#parts?.transactions.finish();
    this.#silence(gone);
  }

  #silence(gone: () => Error): void {
    this.#life.gone ??= gone;
    this.#parts?.transactions.close(this.#life.gone);
    this.#parts?.outputs.close(this.#life.gone);
  }

  get #open(): OpenParts {
    if (this.#parts === null) throw new Error("the turn runtime has no database yet");
    return this.#parts;
  }

  #createTurn<T>(
    spec: TurnSpec<Subject, T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ): Turn {
    const { owner, key } = this.#options;
    const chain = spec.callers === undefined ? this.#chain : [...spec.callers, key];
    return new Turn<Subject, T>(owner, spec, chain, this.#life, resolve, reject) as unknown as Turn;
  }

  /** Step 1. */
  #run(turn: Turn): void {
    turn.phase = "running";
    turn.startedAt = performance.now();
    turn.isOnStack = true;
    const body = turn.body as (subject: unknown) => unknown;
    turn.body = null;
    let result: unknown;
    try {
      result = runInTurn(turn, body, this.#subject);
    } catch (error) {
      turn.isOnStack = false;
      this.#end(turn, "failed", error);
      return;
    }
    turn.isOnStack = false;
    if (!turn.hasFollowUps && !isThenable(result)) {
      this.#end(turn, "done", result);
      return;
    }
    this.#open.transactions.turnLeftStack(turn);
    const timeoutMs = turn.timeoutMs ?? this.#options.timeoutMs;
    if (timeoutMs > 0) turn.timer = setTimeout(() => this.#timeOut(turn, timeoutMs), timeoutMs);
    this.#away.use(turn);
    turn.isAway = true;
    this.#endWith(turn, Promise.resolve(result));
  }

  /** Ends the turn when the result, and then whatever the turn has to wait for, has settled. */
  #endWith(turn: Turn, result: Promise<unknown>): void {
    result.then(
      (value) => {
        const followUps = turn.takeFollowUps();
        if (followUps === null) this.#endOnce(turn, "done", value);
        else
          this.#endWith(
            turn,
            Promise.allSettled(followUps).then(() => value),
          );
      },
      (error: unknown) => this.#endOnce(turn, "failed", error),
    );
  }

  #endOnce(turn: Turn, phase: TurnPhase, outcome: unknown): void {
    if (turn.phase !== "running") return;
    clearTimeout(turn.timer);
    this.#end(turn, phase, outcome);
  }

  #timeOut(turn: Turn, timeoutMs: number): void {
    this.#end(turn, "timed-out", this.#options.createTimeoutError(timeoutMs));
  }

  /** Step 2. `outcome` is the value of a turn that is `done`, else its error. */
  #end(turn: Turn, phase: TurnPhase, outcome: unknown): void {
    const { transactions, outputs } = this.#open;
    if (turn.isAway) this.#away.delete(turn);
    let error = phase === "done" ? turn.commitError : outcome;
    let hasFailed = phase !== "done" || turn.commitError !== null;
    if (hasFailed && this.#options.keepsFailedWrites !== true) transactions.rollback(turn);
    else {
      try {
        transactions.commit(turn);
      } catch (commitError) {
        hasFailed = true;
        error = commitError;
      }
    }
    outputs.segmentEnded();
    turn.phase = hasFailed && phase === "done" ? "failed" : phase;
    if (hasFailed && turn.afterFailure !== null) runOutsideTurns(() => turn.afterFailure?.(error));
    const result = new Outcome(this.#explain, turn, hasFailed, hasFailed ? error : outcome);
    if (turn.isInternal) result.release();
    else outputs.send(result);
    try {
      this.#options.onTurnEnd(turn, hasFailed ? error : null);
    } finally {
      // Whatever the owner does with the error, the next turn must not wait for ever.
      this.#mailbox.turnEnded(turn);
    }
  }

  /** What the caller of a failed turn receives. */
  readonly #explain = (turn: Turn, error: unknown): unknown => {
    const { explainPartial } = this.#options;
    return explainPartial !== undefined && this.#open.transactions.mayBeStored(turn)
      ? explainPartial(turn, error)
      : error;
  };

  /** Step 3. The output gate calls it while no segment is open, and takes a failure of the commit for one of the sync. */
  #sync(): Promise<void> {
    const { transactions, sync } = this.#open;
    transactions.commitBatch();
    return sync();
  }
}

/** The outcome of a turn on its way to the caller. */
class Outcome implements Output {
  readonly #explain: (turn: Turn, error: unknown) => unknown;
  readonly #turn: Turn;
  readonly #hasFailed: boolean;
  /** The value, or the error of a turn that has failed. */
  readonly #value: unknown;

  constructor(
    explain: (turn: Turn, error: unknown) => unknown,
    turn: Turn,
    hasFailed: boolean,
    value: unknown,
  ) {
    this.#explain = explain;
    this.#turn = turn;
    this.#hasFailed = hasFailed;
    this.#value = value;
  }

  release(): void {
    const turn = this.#turn;
    if (!this.#hasFailed) {
      turn.onOutcome?.(null, this.#value);
      turn.resolve(this.#value);
      return;
    }
    const error = turn.isInternal ? this.#value : this.#explain(turn, this.#value);
    turn.onOutcome?.(error, undefined);
    turn.reject(error);
  }

  drop(error: Error): void {
    this.#turn.reject(this.#explain(this.#turn, error));
  }
}

function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}
