/**
 * Runs the due work of an instance: items of its queue, and its schedules.
 *
 * Invariants:
 * 1. At most one queue item and one schedule are in the mailbox at a time, each as a turn of its own: they cannot starve each other, nor the
 *    requests between them.
 * 2. The timer is derived from the rows after every commit that changed them, at the start, and when the clock was set.
 * 3. Work runs when its due time is stored outside of the instance: a run makes the row of its work survive the process, and without a due time no node
 *    would wake the instance after a crash.
 * 4. When the rows cannot be read or written, the pump pauses: a damaged file must neither keep the process busy nor end it.
 * 5. An attempt that the storage has ended is repeated without being counted: the work did not fail. So often in a row as `MAX_CUT_OFFS`.
 */
import { clearTimer, type Clock, setTimer, type Timer } from "../../core/clock.ts";
import {
  currentTurn,
  type Participant,
  type Transactions,
  type TurnSpec,
} from "../../engines/turn-runtime/index.ts";
import { isStorageFailure, MAX_CUT_OFFS } from "./cut-off.ts";
import type { Schedules } from "./schedules.ts";
import type { WorkQueue } from "./work-queue.ts";

/** Pause after a failure of the instance's storage: short enough for a disk that was full for a moment, long enough to cost little. */
export const STORAGE_PAUSE_MS = 10_000;
/**
 * After so many runs the event loop has its turn. Runs that need no wait follow each other in microtasks: a damaged database in which a finished item
 * stays due stopped the whole process, and its memory grew until it ended.
 */
const RUNS_IN_A_ROW = 100;

export interface WorkPumpOptions {
  readonly run: <T>(turn: WorkTurn<T>) => Promise<T>;
  readonly transactions: Pick<Transactions, "join" | "commitNow">;
  readonly queue: WorkQueue;
  readonly schedules: Schedules;
  readonly clock: Clock;
  /** Calls a method of the agent; `item` is the queue item or schedule. */
  readonly perform: (method: string, payload: unknown, item: unknown) => unknown;
  /** The time of the next due work is known or has changed; null when there is none. */
  readonly onDue: (at: number | null) => void;
  /** Null if that time is stored; otherwise it is when the promise resolves. When it rejects, the instance leaves memory. */
  readonly whenDueStored: () => Promise<void> | null;
  /** True while the storage of the instance cannot write. */
  readonly isStorageDown: () => boolean;
  /** No work runs any more. */
  readonly onIdle: () => void;
  /** Work has used up its attempts. */
  readonly onBuried: (kind: "queue" | "schedule", callback: string, error: unknown) => void;
  /** The rows could not be read or written; the pump tries again after a pause. */
  readonly onStorageFailure: (error: unknown) => void;
}

/** What the turn runs is known once it runs. */
function nameTurn({ callback, item }: WorkAttempt): void {
  const turn = currentTurn();
  if (turn === undefined) return;
  turn.label = callback;
  turn.cause = item;
}

export type WorkKind = "queue" | "schedule";

interface WorkTurn<T> extends TurnSpec<unknown, T> {
  readonly kind: WorkKind;
}

interface WorkAttempt {
  readonly callback: string;
  readonly payload: unknown;
  readonly item: { readonly id: string };
  complete(): void;
  fail(error: unknown): boolean;
}

export class WorkPump implements Participant {
  readonly #options: WorkPumpOptions;
  readonly #running = new Set<WorkKind>();
  /** Ids of the work whose attempts run. */
  readonly #attempted = new Map<WorkKind, string>();
  /** How many attempts in a row the storage has ended, the last one included. */
  readonly #cutOffs = new Map<WorkKind, number>();
  #runs = 0;
  #isDirty = false;
  /** Rows have changed since the instance was loaded. */
  #hasChanged = false;
  #isStopped = true;
  #isPaused = false;
  /** The event loop has its turn before the next run. */
  #isYielding = false;
  /** The next due time is being stored. */
  #isStoring = false;
  #timer: Timer | undefined;

  constructor(options: WorkPumpOptions) {
    this.#options = options;
    options.transactions.join(this);
  }

  /** True when no work runs. False before the start: the rows have not been read then. */
  get isIdle(): boolean {
    return this.#running.size === 0 && !this.#isStopped && !this.#isYielding && !this.#isStoring;
  }

  /** True while an attempt of this item or schedule runs. */
  isRunning(kind: WorkKind, id: string): boolean {
    return this.#attempted.get(kind) === id;
  }

  /** Rows have changed in the open transaction. */
  readonly changed = (): void => {
    this.#isDirty = true;
    this.#hasChanged = true;
  };

  /** A new instance has no rows but those it has written since it was loaded. `isResumed`: the storage ended its predecessor. */
  start(isNew: boolean, isResumed: boolean): void {
    this.#isStopped = false;
    if (isResumed) for (const kind of ["queue", "schedule"] as const) this.#cutOffs.set(kind, 1);
    if (!isNew || this.#hasChanged) this.#refresh();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimer(this.#timer);
  }

  /** The clock was set: the timer does not know. */
  clockChanged(): void {
    this.#refresh();
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
    // A failed run is also followed by the commit of its failure, which calls this.
    if (this.#isStopped || this.#isPaused || this.#isYielding || this.#isStoring) return;
    try {
      this.#startDue();
    } catch (error) {
      this.#pause(error);
    }
  }

  #startDue(): void {
    const { clock, queue, schedules } = this.#options;
    const now = clock.now();
    const queueAt = queue.nextAt(now) ?? Number.POSITIVE_INFINITY;
    const scheduleAt = schedules.nextAt() ?? Number.POSITIVE_INFINITY;
    const nextAt = Math.min(queueAt, scheduleAt);
    this.#options.onDue(nextAt === Number.POSITIVE_INFINITY ? null : nextAt);
    const stored = this.#options.whenDueStored();
    if (stored !== null) {
      this.#runWhen(stored);
      return;
    }
    // Before the runs, which may end within the call: a pause, or a time that they have stored, replaces this timer.
    this.#setTimer(Math.min(...[queueAt, scheduleAt].filter((at) => at > now)));
    if (queueAt <= now) this.#run("queue");
    if (scheduleAt <= now && !this.#isPaused) this.#run("schedule");
  }

  #runWhen(stored: Promise<void>): void {
    clearTimer(this.#timer);
    this.#isStoring = true;
    stored.then(
      () => {
        this.#isStoring = false;
        this.#continue();
      },
      // The instance starts again.
      () => undefined,
    );
  }

  #setTimer(at: number): void {
    clearTimer(this.#timer);
    if (at === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#options;
    this.#timer = setTimer(clock, () => this.#refresh(), at - clock.now());
  }

  #pause(error: unknown): void {
    if (this.#isStopped || this.#isPaused) return;
    this.#isPaused = true;
    this.#options.onStorageFailure(error);
    this.#options.onDue(this.#options.clock.now() + STORAGE_PAUSE_MS);
    clearTimer(this.#timer);
    const resume = () => {
      this.#isPaused = false;
      this.#refresh();
    };
    this.#timer = setTimer(this.#options.clock, resume, STORAGE_PAUSE_MS);
  }

  #run(kind: WorkKind): void {
    if (this.#running.has(kind)) return;
    this.#running.add(kind);
    let hasStarted = false;
    let attempt: WorkAttempt | null = null;
    const turn = this.#options.run<unknown>({
      kind,
      label: kind,
      isInternal: true,
      body: () => {
        hasStarted = true;
        const begun = this.#begin(kind);
        // The number of attempts must survive an attempt that ends the process.
        const isSafe = this.#options.transactions.commitNow();
        if (begun === null) return undefined;
        attempt = begun;
        nameTurn(begun);
        this.#attempted.set(kind, begun.item.id);
        return isSafe === null ? this.#perform(kind, begun) : isSafe.then(() => this.#perform(kind, begun));
      },
      afterFailure: (error) => {
        if (attempt === null) this.#pause(error);
        else this.#fail(kind, attempt, error);
      },
    });
    void Promise.allSettled([turn]).then(() => {
      this.#running.delete(kind);
      this.#attempted.delete(kind);
      // Refused: the instance is leaving memory, and would refuse the next one too.
      if (!hasStarted) return;
      this.#runs += 1;
      if (this.#runs % RUNS_IN_A_ROW !== 0) {
        this.#continue();
        return;
      }
      this.#isYielding = true;
      setImmediate(() => {
        this.#isYielding = false;
        this.#continue();
      });
    });
  }

  #continue(): void {
    this.#refresh();
    if (this.isIdle) this.#options.onIdle();
  }

  /** Calls the method, and completes the attempt in the last segment of the method. */
  #perform(kind: WorkKind, attempt: WorkAttempt): unknown {
    const result = this.#options.perform(attempt.callback, attempt.payload, attempt.item);
    if (result instanceof Promise) return result.then(() => this.#complete(kind, attempt));
    this.#complete(kind, attempt);
    return undefined;
  }

  #complete(kind: WorkKind, attempt: WorkAttempt): void {
    attempt.complete();
    this.#cutOffs.delete(kind);
  }

  #fail(kind: WorkKind, attempt: WorkAttempt, error: unknown): void {
    const cutOffs = (this.#cutOffs.get(kind) ?? 0) + 1;
    if (isStorageFailure(error) && this.#options.isStorageDown() && cutOffs <= MAX_CUT_OFFS) {
      this.#cutOffs.set(kind, cutOffs);
      this.#pause(error);
      return;
    }
    this.#cutOffs.delete(kind);
    try {
      if (attempt.fail(error)) this.#options.onBuried(kind, attempt.callback, error);
    } catch (failure) {
      this.#pause(failure);
    }
  }

  #begin(kind: WorkKind): WorkAttempt | null {
    if (kind === "queue") {
      const attempt = this.#options.queue.begin(this.#cutOffs.has(kind));
      if (attempt === null) return null;
      const { item } = attempt;
      return { ...attempt, callback: item.callback, payload: item.payload, item };
    }
    const attempt = this.#options.schedules.begin(this.#cutOffs.has(kind));
    if (attempt === null) return null;
    const { schedule } = attempt;
    return { ...attempt, callback: schedule.callback, payload: schedule.payload, item: schedule };
  }
}
