/**
 * The alarm of an object: one due time, at least one call of `alarm()`.
 *
 *   none → set → running → none            the handler returned
 *                        → set (a retry)   the handler threw: 2 s × 2^n later, at most six times
 *                        → set             the handler, or code beside it, set the alarm again
 *
 * Invariants:
 * 1. The row is the truth: what is in memory (the timer, the due time in the catalog) is derived from it after each commit.
 * 2. A row that is `running` when the object is loaded belongs to a process that ended: the handler is called again.
 * 3. At most one handler runs at a time.
 * 4. An attempt is durable before its handler runs. A handler that ends the process uses up its attempts like one that throws: it cannot keep
 *    the server from starting for ever. An attempt that the storage has ended is not counted: the handler did not fail.
 */
import { sql } from "../../core/sql.ts";
import { clearTimer, type Clock, setTimer, type Timer } from "../../core/clock.ts";
import { isStorageFailure, MAX_CUT_OFFS } from "../work/cut-off.ts";
import type { Participant } from "../../engines/turn-runtime/index.ts";
import type { StorageParts } from "./storage-parts.ts";

const NO_ROW = "the object's database has no row of the object";
const FIRST_RETRY_MS = 2000;
const MAX_RETRIES = 6;

/** What `alarm()` receives. */
export interface AlarmInfo {
  readonly retryCount: number;
  readonly isRetry: boolean;
  readonly scheduledTime: number;
}

export interface ObjectAlarmOptions extends StorageParts {
  readonly clock: Clock;
  /** The due time has changed; null for none. */
  readonly onDue: (at: number | null) => void;
  /** Runs the function as a turn of the object. */
  readonly run: (body: () => Promise<void>) => Promise<void>;
  /** Resolves when everything written so far is durable. */
  readonly passGate: () => Promise<void>;
  /** Calls the handler of the object. */
  readonly ring: (info: AlarmInfo) => unknown;
  /** True while the storage of the object cannot write. */
  readonly isStorageDown: () => boolean;
  /** The handler has failed for the last time. */
  readonly onGiveUp: (error: unknown) => void;
}

interface Row {
  readonly alarm_at: number | null;
  readonly alarm_retries: number;
  readonly alarm_running: number;
}

export class ObjectAlarm implements Participant {
  readonly #options: ObjectAlarmOptions;
  #timer: Timer | undefined;
  #hasChanged = false;
  /** Also by the constructor, before the start. */
  #wasSet = false;
  #isStarted = false;
  #isRinging = false;
  /** A process ended while the handler ran; read when the object is loaded. */
  #isInterrupted = false;
  /** How many attempts in a row the storage has ended. */
  #cutOffs = 0;

  constructor(options: ObjectAlarmOptions) {
    this.#options = options;
    options.transactions.join(this);
  }

  /** The time of the alarm that is set; null for none, also while its handler runs. */
  get(): number | null {
    this.#options.transactions.requirePresent();
    const { alarm_at: at, alarm_running: running } = this.#row();
    return running === 1 ? null : at;
  }

  set(at: number): void {
    this.#write(at, 0, 0);
    this.#options.counters.wroteOwn(1);
  }

  delete(): void {
    const isSet = this.get() !== null;
    this.#write(null, 0, 0);
    // There is nothing to delete for the program otherwise.
    if (isSet) this.#options.counters.wroteOwn(1);
  }

  /** Begins to ring: the object has been constructed. `isResumed`: an attempt of its predecessor was ended by the storage, not by the process. */
  start(isNew: boolean, isResumed: boolean): void {
    this.#isStarted = true;
    // Most new objects have none, and reading the row takes a part of their first touch.
    if (isNew && !this.#wasSet) return;
    this.#isInterrupted = !isResumed && this.#row().alarm_running === 1;
    this.#derive();
  }

  stop(): void {
    this.#isStarted = false;
    clearTimer(this.#timer);
  }

  /** The clock was set: the timer does not know. */
  clockChanged(): void {
    if (this.#isStarted && !this.#isRinging) this.#armAfter(false);
  }

  beforeCommit(): void {
    if (this.#hasChanged) this.#options.onDue(this.#row().alarm_at);
  }

  afterCommit(): void {
    if (!this.#hasChanged) return;
    this.#hasChanged = false;
    this.#wasSet = true;
    this.#arm(this.#row().alarm_at);
  }

  afterRollback(): void {
    this.#hasChanged = false;
  }

  #derive(): void {
    const { alarm_at: at } = this.#row();
    this.#options.onDue(at);
    // At once, and not by a timer of no time: until it fired, an object that was loaded for its alarm would count as idle.
    if (at !== null && at <= this.#options.clock.now()) void this.#ring();
    else this.#arm(at);
  }

  #arm(at: number | null): void {
    clearTimer(this.#timer);
    if (at === null || !this.#isStarted || this.#isRinging) return;
    const { clock } = this.#options;
    const due = () => {
      if (clock.now() < at) this.#arm(at);
      else void this.#ring();
    };
    this.#timer = setTimer(clock, due, at - clock.now());
  }

  async #ring(): Promise<void> {
    if (this.#isRinging) return;
    this.#isRinging = true;
    let hasFailed = false;
    try {
      await this.#options.run(() => this.#attempt());
    } catch {
      // The handler or the storage failed, which the turn has reported, or the object left memory before the turn could run.
      hasFailed = true;
    }
    this.#isRinging = false;
    if (this.#isStarted) this.#armAfter(hasFailed);
  }

  /** A handler that failed has left a later time. If the time has not moved, the row could not be read or written: the next attempt waits. */
  #armAfter(hasFailed: boolean): void {
    try {
      const { alarm_at: at } = this.#row();
      if (!hasFailed || at === null || at > this.#options.clock.now()) {
        this.#arm(at);
        return;
      }
    } catch {
      // A damaged database must neither end the process nor keep it busy.
    }
    clearTimer(this.#timer);
    this.#timer = setTimer(this.#options.clock, () => void this.#ring(), FIRST_RETRY_MS);
  }

  async #attempt(): Promise<void> {
    if (this.#isInterrupted) this.#countInterrupted();
    const { alarm_at: at, alarm_retries: retries } = this.#row();
    if (at === null || at > this.#options.clock.now()) return;
    this.#write(at, retries, 1);
    await this.#options.passGate();
    // The alarm may have been set or deleted in the meantime.
    if (this.#row().alarm_running === 0) return;
    try {
      await this.#options.ring({ retryCount: retries, isRetry: retries > 0, scheduledTime: at });
    } catch (error) {
      this.#failed(error, retries);
      throw error;
    }
    this.#cutOffs = 0;
    if (this.#row().alarm_running === 1) this.#write(null, 0, 0);
  }

  /** The process ended during the attempt before. One restart costs no time; after more of them the alarm waits as after failures. */
  #countInterrupted(): void {
    this.#isInterrupted = false;
    const { alarm_at: at, alarm_retries: retries, alarm_running: running } = this.#row();
    if (at === null || running === 0) return;
    if (retries === 0) this.#write(at, 1, 0);
    else this.#failed(new Error("the process ended while alarm() ran"), retries);
  }

  #failed(error: unknown, retries: number): void {
    // An alarm that was set again in the meantime replaces the retry.
    if (this.#row().alarm_running === 0) return;
    const now = this.#options.clock.now();
    this.#cutOffs += 1;
    if (isStorageFailure(error) && this.#options.isStorageDown() && this.#cutOffs <= MAX_CUT_OFFS) {
      this.#write(now + FIRST_RETRY_MS, retries, 0);
      return;
    }
    this.#cutOffs = 0;
    if (retries < MAX_RETRIES) {
      this.#write(now + FIRST_RETRY_MS * 2 ** retries, retries + 1, 0);
      return;
    }
    this.#write(null, 0, 0);
    this.#options.onGiveUp(error);
  }

  #write(at: number | null, retries: number, running: number): void {
    const { database, transactions } = this.#options;
    transactions.open();
    this.#hasChanged = true;
    const { changes } = database.run(
      sql`UPDATE _signalbox_object SET alarm_at = ${at}, alarm_retries = ${retries}, alarm_running = ${running} WHERE id = 1`,
    );
    if (changes === 0) throw new Error(NO_ROW);
  }

  #row(): Row {
    const row = this.#options.database.get<Row>(
      sql`SELECT alarm_at, alarm_retries, alarm_running FROM _signalbox_object WHERE id = 1`,
    );
    if (row === undefined) throw new Error(NO_ROW);
    return row;
  }
}
