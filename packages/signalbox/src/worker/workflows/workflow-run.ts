/**
 * One execution of a workflow's `run`, from the start or as a replay: finished steps answer from the store.
 *
 *   active ⇄ parked → over
 *
 * Invariants:
 * 1. A step's result is stored and synced before the program sees it; its callback runs at least once and, after a result was stored, never again.
 * 2. Every wait has a time in the store, so that the object may leave memory while it is parked.
 * 3. Before a waiting program goes on, the store is read. It throws if the object has left memory: a left-over run does not go on beside its successor.
 * 4. An execution that is over (ended, terminated, restarted, failed) never goes on: its pending steps stay pending, and it writes nothing.
 * 5. While it unwinds, finished steps answer from the store and no other begins: it only finds out which steps have handlers that undo them.
 * 6. A failure of the storage ends the execution, not the workflow: the program sees neither a result nor an error, and the next execution replays
 *    it from what is stored.
 */
import type { StepId, StepKind, WorkflowStore } from "./workflow-store.ts";

interface Waiter {
  /** Resolves the wait and returns true if it is over. */
  check(now: number): boolean;
  readonly wakeAt: number;
  timer?: NodeJS.Timeout;
}

/** The longest delay of a timer; longer waits are left to the alarm. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class WorkflowRun {
  readonly #store: WorkflowStore;
  readonly #now: () => number;
  readonly #sync: () => Promise<void>;
  readonly #counts = new Map<string, number>();
  readonly #waiters = new Set<Waiter>();
  #running = 0;
  #isOver = false;
  #failure: { readonly reason: unknown } | null = null;
  #isPaused = false;
  readonly #isUnwinding: boolean;
  /** Resolved when an unwinding program has come to a step that is not finished. */
  readonly #frontier = Promise.withResolvers<void>();
  /** Resolved, and replaced, when a step ends or a wait begins. */
  #change = Promise.withResolvers<void>();

  constructor(store: WorkflowStore, now: () => number, sync: () => Promise<void>, isUnwinding = false) {
    this.#isUnwinding = isUnwinding;
    this.#store = store;
    this.#now = now;
    this.#sync = sync;
  }

  get now(): number {
    return this.#now();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Why the storage ended the execution; null if it did not. */
  get failure(): { readonly reason: unknown } | null {
    return this.#failure;
  }

  get isParked(): boolean {
    return this.#running === 0 && this.#waiters.size > 0;
  }

  get runningSteps(): number {
    return this.#running;
  }

  /** Resolves when nothing runs but waits, or when the execution is over. */
  async untilParked(): Promise<void> {
    for (;;) {
      // The program goes on in microtasks: only after them it is known whether it started another step.
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#isOver || this.isParked) return;
      await this.#change.promise;
    }
  }

  /** The next step of this kind and name. */
  idOf(kind: StepKind, name: string): StepId {
    const key = `${kind} ${name}`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return { kind, name, count };
  }

  /** Holds an unwinding program for ever before a step that is not finished. */
  async untilForward(): Promise<void> {
    if (!this.#isUnwinding) return;
    this.#frontier.resolve();
    await never();
  }

  /** Resolves when an unwinding program cannot go on. */
  get frontier(): Promise<void> {
    return this.#frontier.promise;
  }

  /** The execution does not go on. */
  end(): void {
    this.#isOver = true;
    for (const { timer } of this.#waiters) clearTimeout(timer);
    this.#waiters.clear();
    this.#changed();
  }

  /** The storage has failed. */
  fail(reason: unknown): void {
    if (this.#isOver) return;
    this.#failure = { reason };
    this.end();
  }

  /** Statements of the execution. What they throw goes through `during`, except for a value that cannot be stored. */
  use<T>(statements: (store: WorkflowStore) => T): T {
    if (this.#isOver) throw new Error("the execution of the workflow is over");
    try {
      return statements(this.#store);
    } catch (error) {
      if (!isCloneError(error)) this.fail(error);
      throw error;
    }
  }

  /** What the program awaits: its outcome, unless the execution is over. */
  async during<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step();
    } finally {
      if (this.#isOver) await never();
    }
  }

  /** Runs the callback of a step. The run is active meanwhile. */
  async work<T>(callback: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      const result = await callback();
      await this.#sync().catch((error: unknown) => this.fail(error));
      return result;
    } finally {
      this.#running -= 1;
      this.#changed();
    }
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.wake();
  }

  /** Holds the program before a step while the instance is paused. */
  async untilResumed(): Promise<void> {
    if (this.#isOver) await never();
    if (this.#isPaused) await this.wait(Number.POSITIVE_INFINITY, () => (this.#isPaused ? undefined : true));
  }

  /** Waits until `poll` returns something, or until `wakeAt`; undefined is the time. */
  async wait<T>(wakeAt: number, poll: (now: number) => T | undefined): Promise<T | undefined> {
    if (this.#isOver) await never();
    const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
    const waiter: Waiter = {
      wakeAt,
      check: (now) => {
        try {
          const found = poll(now);
          if (found === undefined && now < wakeAt) return false;
          resolve(found);
        } catch (error) {
          reject(error);
        }
        return true;
      },
    };
    this.#waiters.add(waiter);
    this.#arm(waiter);
    this.#changed();
    this.wake();
    return promise;
  }

  /** Lets those go on whose wait is over. A paused program only finds out that it was resumed. */
  wake(): void {
    if (this.#isOver || this.#waiters.size === 0) return;
    try {
      if (this.#store.find() === null) this.end();
    } catch (error) {
      this.fail(error);
    }
    const now = this.#now();
    for (const waiter of this.#waiters) {
      if (this.#isPaused && waiter.wakeAt !== Number.POSITIVE_INFINITY) continue;
      if (!waiter.check(now)) continue;
      clearTimeout(waiter.timer);
      this.#waiters.delete(waiter);
    }
  }

  #arm(waiter: Waiter): void {
    const delayMs = waiter.wakeAt - this.#now();
    if (delayMs >= MAX_TIMER_MS) return;
    const ring = () => {
      this.wake();
      // Timers may fire a millisecond early.
      if (this.#waiters.has(waiter)) this.#arm(waiter);
    };
    waiter.timer = setTimeout(ring, Math.max(1, delayMs)).unref();
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
  }
}

/** A new promise for each wait: one that all share would keep what waits for it, which is a program, in memory for ever. */
function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** True for a value that cannot be stored: an error of the program. */
export function isCloneError(error: unknown): boolean {
  return error instanceof Error && error.name === "DataCloneError";
}
