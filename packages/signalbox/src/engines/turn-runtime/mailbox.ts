/**
 * Runs an instance's turns one at a time, in the order they arrived.
 *
 * Invariants:
 * 1. A turn starts only when the one before it has ended, however often that awaits; an agent that opted in (`interleave`) lets a turn
 *    start while others are at an await.
 * 2. A turn's outcome reaches its caller through the gate, after the commit or rollback, success and failure alike. (The runtime's own
 *    work has no caller outside and is not held up.)
 * 3. A turn that takes longer than its limit is cut: its caller gets `agent_turn_timeout`, its open transaction is rolled back, and the
 *    next turn starts. (A function that never gives the event loop back cannot be cut from inside the process.)
 * 4. The number of waiting turns from outside is bounded; one more is refused with `overloaded`.
 */
import { SignalboxError } from "@signalbox/protocol";
import { runInTurn } from "./current-turn.ts";
import type { OutputGate } from "./output-gate.ts";
import type { Transactions } from "./transactions.ts";
import { Turn, type TurnOwner, type TurnSpec } from "./turn.ts";

/** Turns that run without waiting are run this many at a stretch before other instances and sockets get the event loop. */
const STRETCH = 64;

export interface MailboxOptions {
  readonly maxWaiting: number;
  readonly timeoutMs: number;
  readonly isInterleaving: boolean;
  readonly owner: TurnOwner;
  /** Called after each turn, with what became of it. */
  readonly onEnd: (turn: Turn, error: unknown) => void;
  /** Called when no turn runs or waits. */
  readonly onIdle: () => void;
}

export class Mailbox {
  readonly #options: MailboxOptions;
  readonly #chain: readonly string[];
  #waiting: Turn[] = [];
  #head = 0;
  #running = 0;
  #gate: OutputGate | null = null;
  #transactions: Transactions | null = null;
  /** True while turns are being started or a start is due: whoever adds a turn then need not start it. */
  #isDraining = false;
  /** False until the first turn has succeeded. */
  #isOpen = false;
  /** Makes the error that turns are refused with; most mailboxes close without anybody asking, and a stack trace takes its time. */
  #closed: (() => unknown) | null = null;
  #quiet: (() => void)[] = [];

  constructor(options: MailboxOptions) {
    this.#options = options;
    this.#chain = [options.owner.key];
  }

  get isIdle(): boolean {
    return this.#running === 0 && this.#head === this.#waiting.length;
  }

  get waitingCount(): number {
    return this.#waiting.length - this.#head;
  }

  /** Resolves with what `body` returned once everything it did, and saw, is durable. */
  run<T>(spec: TurnSpec<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#closed !== null) {
        reject(this.#closed());
        return;
      }
      if (this.waitingCount >= this.#options.maxWaiting && spec.isGated !== false) {
        reject(
          new SignalboxError("overloaded", {
            message: "The instance has too many waiting events",
            headers: { "retry-after": "1" },
          }),
        );
        return;
      }
      const chain = spec.callers === undefined ? this.#chain : [...spec.callers, this.#options.owner.key];
      this.#waiting.push(new Turn<T>(this.#options.owner, spec, chain, resolve, reject) as unknown as Turn);
      if (!this.#isOpen || this.#isDraining) return;
      // A turn of an interleaving agent may not start on the stack of another turn's code, which is in the middle of its segment.
      if (this.#options.isInterleaving) this.#drainLater(queueMicrotask);
      else this.#drain();
    });
  }

  /** Runs the first turn (`onStart`), ahead of what waits; then the mailbox is open. */
  async open(gate: OutputGate, transactions: Transactions, first: () => void | Promise<void>): Promise<void> {
    this.#gate = gate;
    this.#transactions = transactions;
    await new Promise<void>((resolve, reject) => {
      const spec = { kind: "start", label: "onStart", body: first, isGated: false } as const;
      this.#execute(
        new Turn<void>(this.#options.owner, spec, this.#chain, resolve, reject) as unknown as Turn,
      );
    });
    this.#isOpen = true;
    this.#drain();
  }

  /** Refuses every waiting and later turn; the one that runs goes on. */
  close(reason: () => unknown): void {
    this.#closed = reason;
    const waiting = this.#waiting.slice(this.#head);
    this.#waiting = [];
    this.#head = 0;
    for (const turn of waiting) turn.reject(reason());
  }

  /** Resolves when no turn runs. */
  whenQuiet(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#quiet.push(resolve));
  }

  #drain(): void {
    this.#isDraining = true;
    let count = 0;
    while (this.#head < this.#waiting.length && (this.#running === 0 || this.#options.isInterleaving)) {
      if (count === STRETCH) {
        this.#drainLater(setImmediate);
        return;
      }
      count += 1;
      const turn = this.#waiting[this.#head] as Turn;
      this.#head += 1;
      this.#dropStarted();
      this.#execute(turn);
    }
    this.#isDraining = false;
    if (this.isIdle) this.#options.onIdle();
  }

  /** Removes turns that have started. A list that becomes empty keeps its memory: a new one with every event would outlive it. */
  #dropStarted(): void {
    if (this.#head === this.#waiting.length) while (this.#waiting.length > 0) this.#waiting.pop();
    else if (this.#head > 1024) this.#waiting = this.#waiting.slice(this.#head);
    else return;
    this.#head = 0;
  }

  #drainLater(schedule: (callback: () => void) => unknown): void {
    this.#isDraining = true;
    schedule(() => this.#drain());
  }

  #execute(turn: Turn): void {
    this.#running += 1;
    turn.phase = "running";
    turn.startedAt = performance.now();
    turn.isOnStack = true;
    const body = turn.body as () => unknown;
    turn.body = null;
    let result: unknown;
    try {
      result = runInTurn(turn, body);
    } catch (error) {
      turn.isOnStack = false;
      this.#end(turn, false, error);
      return;
    }
    turn.isOnStack = false;
    if (turn.followUps === null && !isThenable(result)) {
      this.#end(turn, true, result);
      return;
    }
    this.#transactions?.leftStack(turn);
    turn.timer = setTimeout(() => this.#cut(turn), this.#options.timeoutMs);
    this.#settle(turn, Promise.resolve(result));
  }

  #settle(turn: Turn, result: Promise<unknown>): void {
    result.then(
      (value) => {
        const followUps = turn.followUps;
        if (followUps === null) this.#endLater(turn, true, value);
        else {
          turn.followUps = null;
          this.#settle(
            turn,
            Promise.allSettled(followUps).then(() => value),
          );
        }
      },
      (error: unknown) => this.#endLater(turn, false, error),
    );
  }

  #endLater(turn: Turn, isOk: boolean, outcome: unknown): void {
    if (turn.phase === "cut") return;
    clearTimeout(turn.timer);
    this.#end(turn, isOk, outcome);
    if (this.#isOpen && !this.#isDraining) this.#drain();
  }

  #end(turn: Turn, isOk: boolean, outcome: unknown): void {
    const transactions = this.#transactions as Transactions;
    let error: unknown = isOk ? turn.doom : outcome;
    let hasFailed = !isOk || turn.doom !== null;
    if (hasFailed) transactions.rollbackOf(turn);
    else {
      try {
        transactions.commitOf(turn);
      } catch (commitError) {
        hasFailed = true;
        error = commitError;
      }
    }
    (this.#gate as OutputGate).segmentEnded();
    turn.phase = hasFailed ? "failed" : "done";
    this.#running -= 1;
    if (hasFailed) turn.afterFailure?.(error);
    const release = () => {
      turn.tell?.(hasFailed ? error : null, hasFailed ? undefined : outcome);
      if (hasFailed) turn.reject(error);
      else turn.resolve(outcome);
    };
    if (turn.isGated) (this.#gate as OutputGate).send({ release, drop: turn.reject });
    else release();
    this.#options.onEnd(turn, hasFailed ? error : null);
    if (this.#running === 0 && this.#quiet.length > 0) for (const resolve of this.#quiet.splice(0)) resolve();
  }

  #cut(turn: Turn): void {
    const error = new SignalboxError("agent_turn_timeout", {
      message: `The turn took longer than ${this.#options.timeoutMs} ms`,
    });
    this.#end(turn, false, error);
    turn.phase = "cut";
    if (this.#isOpen && !this.#isDraining) this.#drain();
  }
}

function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}
