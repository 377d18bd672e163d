/**
 * Runs what the instance's queue and schedules hold when it is due.
 *
 * Invariants:
 * 1. At most one queue item and one schedule are in the mailbox at a time, each as a turn of its own: neither can starve the other, nor
 *    the requests between them.
 * 2. The timer is derived from the rows after every commit that changed them, and at the start.
 * 3. When the rows cannot be read or written, nothing is tried for a while: a damaged file must not keep the process busy, nor end it.
 */
import type { Clock } from "../../core/clock.ts";
import type { Mailbox, Participant, Transactions, TurnKind } from "../../engines/turn-runtime/index.ts";
import type { Schedules } from "./schedules.ts";
import type { WorkQueue } from "./work-queue.ts";

/** Longest time node's timers can hold; a later due time is looked at again then. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Pause after an instance's storage has failed: often enough for a disk that was full for a moment, too seldom to be a burden. */
export const STORAGE_PAUSE_MS = 10_000;

export interface WorkPumpOptions {
  readonly mailbox: Mailbox;
  readonly transactions: Transactions;
  readonly queue: WorkQueue;
  readonly schedules: Schedules;
  readonly clock: Clock;
  /** Calls a method of the agent. */
  readonly call: (method: string, payload: unknown, about: unknown) => unknown;
  /** The time of the next due work has become known or has changed; null when there is none. */
  readonly onDue: (at: number | null) => void;
  /** Nothing of the instance's own work runs any more. */
  readonly onIdle: () => void;
  /** Work has used up its attempts. */
  readonly onBuried: (kind: "queue" | "schedule", callback: string, error: unknown) => void;
  /** The rows could not be read or written; they are looked at again after a pause. */
  readonly onStorageFailure: (error: unknown) => void;
}

interface Attempt {
  readonly callback: string;
  readonly payload: unknown;
  readonly about: unknown;
  complete(): void;
  fail(error: unknown): boolean;
}

export class WorkPump implements Participant {
  readonly #options: WorkPumpOptions;
  readonly #running = new Set<TurnKind>();
  #isDirty = false;
  /** Rows have ever changed in this life. */
  #hasChanged = false;
  #isStopped = true;
  #isPaused = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WorkPumpOptions) {
    this.#options = options;
    options.transactions.join(this);
  }

  /** Nothing runs; before the start it is not known whether something has to. */
  get isIdle(): boolean {
    return this.#running.size === 0 && !this.#isStopped;
  }

  /** Rows have changed in the open transaction. */
  readonly changed = (): void => {
    this.#isDirty = true;
    this.#hasChanged = true;
  };

  /** A new instance has no rows but those it has just made. */
  start(isNew: boolean): void {
    this.#isStopped = false;
    if (!isNew || this.#hasChanged) this.#refresh();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** When work is due next; null when there is none. */
  nextAt(): number | null {
    const times = [this.#options.queue.nextAt(), this.#options.schedules.nextAt()].filter(
      (at) => at !== null,
    );
    return times.length === 0 ? null : Math.min(...times);
  }

  afterCommit(): void {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#refresh();
  }

  afterRollback(): void {
    this.#isDirty = false;
  }

  #refresh(): void {
    if (this.#isStopped || this.#isPaused) return;
    try {
      this.#look();
    } catch (error) {
      this.#pause(error);
    }
  }

  #look(): void {
    const now = this.#options.clock.now();
    const queueAt = this.#options.queue.nextAt();
    const scheduleAt = this.#options.schedules.nextAt();
    this.#options.onDue(earliest(queueAt, scheduleAt));
    if (queueAt !== null && queueAt <= now) this.#run("queue");
    if (scheduleAt !== null && scheduleAt <= now) this.#run("schedule");
    this.#arm(
      earliest(
        queueAt !== null && queueAt > now ? queueAt : null,
        scheduleAt !== null && scheduleAt > now ? scheduleAt : null,
      ),
      now,
    );
  }

  #arm(at: number | null, now: number): void {
    clearTimeout(this.#timer);
    if (at === null) return;
    this.#timer = setTimeout(() => this.#refresh(), Math.min(at - now, MAX_TIMER_MS)).unref();
  }

  #pause(error: unknown): void {
    if (this.#isStopped || this.#isPaused) return;
    this.#isPaused = true;
    this.#options.onStorageFailure(error);
    this.#options.onDue(this.#options.clock.now() + STORAGE_PAUSE_MS);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isPaused = false;
      this.#refresh();
    }, STORAGE_PAUSE_MS).unref();
  }

  #run(kind: "queue" | "schedule"): void {
    if (this.#running.has(kind)) return;
    this.#running.add(kind);
    let attempt: Attempt | null = null;
    const turn = this.#options.mailbox.run({
      kind,
      label: kind,
      isGated: false,
      body: () => {
        const begun = this.#begin(kind);
        // The count must be stored even if the attempt takes the whole process down.
        this.#options.transactions.commitNow();
        if (begun === null) return undefined;
        attempt = begun;
        return perform(begun, this.#options.call);
      },
      afterFailure: (error) => {
        if (attempt === null) this.#pause(error);
        else this.#fail(kind, attempt, error);
      },
    });
    void Promise.allSettled([turn]).then(() => {
      this.#running.delete(kind);
      this.#refresh();
      if (this.isIdle) this.#options.onIdle();
    });
  }

  #fail(kind: "queue" | "schedule", attempt: Attempt, error: unknown): void {
    try {
      if (attempt.fail(error)) this.#options.onBuried(kind, attempt.callback, error);
    } catch (failure) {
      this.#pause(failure);
    }
  }

  #begin(kind: "queue" | "schedule"): Attempt | null {
    if (kind === "queue") {
      const attempt = this.#options.queue.begin();
      if (attempt === null) return null;
      const { item } = attempt;
      return { ...attempt, callback: item.callback, payload: item.payload, about: item };
    }
    const attempt = this.#options.schedules.begin();
    if (attempt === null) return null;
    const { schedule } = attempt;
    return { ...attempt, callback: schedule.callback, payload: schedule.payload, about: schedule };
  }
}

function perform(attempt: Attempt, call: WorkPumpOptions["call"]): unknown {
  const result = call(attempt.callback, attempt.payload, attempt.about);
  if (result instanceof Promise) return result.then(() => attempt.complete());
  attempt.complete();
  return undefined;
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
