/**
 * Durable schedules of one instance: at a time, after a delay, by a cron expression, or at an interval.
 *
 * Invariants:
 * 1. The rows alone determine what is due, before and after a restart; timers are derived from them.
 * 2. A schedule that was missed, however often, runs once; its next due time is in the future.
 * 3. A recurring schedule exists once per method, rule and payload: adding it again returns the existing one. In `onStart`, which runs at every
 *    load, that also applies to schedules that run once.
 * 4. The next due time of a recurring schedule, or the deletion of one that ran once, is stored in the transaction of the handler's last segment.
 * 5. Every run changes the row that it read, or fails (see `WorkQueue`).
 */
import type { Clock } from "../../core/clock.ts";
import { sql } from "../../core/sql.ts";
import { ulid } from "../../core/ulid.ts";
import { DamagedWorkError, requireChange, requireNumber } from "./damaged-work.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { toStoredPayload } from "./payload.ts";
import {
  fromStoredRetry,
  nextAttempt,
  retryDelay,
  type RetryOptions,
  toStoredRetry,
} from "./retry-options.ts";
import {
  nextDue,
  parseInterval,
  parseTiming,
  type Schedule,
  type ScheduleRow,
  type ScheduleState,
  type ScheduleType,
  type Timing,
  toSchedule,
} from "./schedule-row.ts";
import { errorText } from "./work-queue.ts";
import type { WorkTables } from "./work-tables.ts";

export interface ScheduleOptions {
  readonly retry?: RetryOptions;
  /** Returns an equal schedule instead of adding another. Default: true for cron expressions, intervals, and inside `onStart`. */
  readonly idempotent?: boolean;
}

export interface ScheduleCriteria {
  readonly id?: string;
  readonly type?: ScheduleType;
  readonly timeRange?: { readonly start?: Date; readonly end?: Date };
}

export interface ScheduleAttempt {
  readonly schedule: Schedule;
  complete(): void;
  /** Returns true when the attempts are used up. */
  fail(error: unknown): boolean;
}

export class Schedules {
  readonly #tables: WorkTables;
  readonly #deadLetters: DeadLetters;
  readonly #clock: Clock;
  readonly #onChange: () => void;

  constructor(tables: WorkTables, deadLetters: DeadLetters, clock: Clock, onChange: () => void) {
    this.#tables = tables;
    this.#deadLetters = deadLetters;
    this.#clock = clock;
    this.#onChange = onChange;
  }

  add(when: Date | string | number, callback: string, payload: unknown, options: ScheduleOptions): Schedule {
    const timing = parseTiming(when, this.#clock.now());
    const defaults = timing.type === "cron" ? { idempotent: true } : {};
    return this.#insert(timing, callback, payload, { ...defaults, ...options });
  }

  addEvery(seconds: number, callback: string, payload: unknown, options: ScheduleOptions): Schedule {
    const timing = parseInterval(seconds, this.#clock.now());
    return this.#insert(timing, callback, payload, { idempotent: true, ...options });
  }

  cancel(id: string): boolean {
    const { changes } = this.#tables.change(sql`DELETE FROM _signalbox_schedule WHERE id = ${id}`);
    if (changes > 0) this.#onChange();
    return changes > 0;
  }

  /** Makes the schedule due now, in addition to its time: a recurring one keeps its next time. Returns false if there is none. */
  runNow(id: string): boolean {
    const { changes } = this.#tables.change(
      sql`UPDATE _signalbox_schedule SET next_at = ${this.#clock.now()} WHERE id = ${id}`,
    );
    if (changes > 0) this.#onChange();
    return changes > 0;
  }

  /** With their attempts, by due time; with an id, that one. */
  states(id?: string): ScheduleState[] {
    const ofId = id === undefined ? sql`` : sql`WHERE id = ${id}`;
    return this.#tables
      .all<ScheduleRow>(sql`SELECT * FROM _signalbox_schedule ${ofId} ORDER BY due, id`)
      .map((row) => ({ ...toSchedule(row), attempts: row.attempts }));
  }

  find(id: string): Schedule | undefined {
    const row = this.#tables.get<ScheduleRow>(sql`SELECT * FROM _signalbox_schedule WHERE id = ${id}`);
    return row === undefined ? undefined : toSchedule(row);
  }

  list(criteria: ScheduleCriteria = {}): Schedule[] {
    const start = criteria.timeRange?.start?.getTime() ?? 0;
    const end = criteria.timeRange?.end?.getTime() ?? Number.MAX_SAFE_INTEGER;
    return this.#tables
      .all<ScheduleRow>(
        sql`SELECT * FROM _signalbox_schedule WHERE due >= ${start} AND due <= ${end} ORDER BY due, id`,
      )
      .filter(
        (row) =>
          (criteria.id === undefined || row.id === criteria.id) &&
          (criteria.type === undefined || row.type === criteria.type),
      )
      .map(toSchedule);
  }

  count(): number {
    return this.#tables.get<{ n: number }>(sql`SELECT count(*) AS n FROM _signalbox_schedule`)?.n ?? 0;
  }

  nextAt(): number | null {
    const at = this.#tables.get<{ at: number | null }>(
      sql`SELECT min(next_at) AS at FROM _signalbox_schedule`,
    )?.at;
    return at == null ? null : requireNumber(at);
  }

  /** Takes the schedule that has been due longest and counts the attempt; null when none is due. Called in a transaction of its own. `isResumed`: as for the queue. */
  begin(isResumed = false): ScheduleAttempt | null {
    const row = this.#firstDue(isResumed);
    if (row === null) return null;
    const attempted = { ...row, attempts: nextAttempt(row.attempts, isResumed) };
    const { changes } = this.#tables.change(
      sql`UPDATE _signalbox_schedule SET attempts = ${attempted.attempts}
          WHERE id = ${row.id} AND attempts = ${row.attempts} AND next_at = ${row.next_at}`,
    );
    requireChange(changes);
    return {
      schedule: toSchedule(row),
      complete: () => void this.#moveOn(row),
      fail: (error) => this.#fail(attempted, error),
    };
  }

  /** The schedule that has been due longest and has attempts left. Those without have ended the process in their last attempt. */
  #firstDue(isResumed: boolean): ScheduleRow | null {
    const now = this.#clock.now();
    for (;;) {
      const row = this.#tables.get<ScheduleRow>(
        sql`SELECT * FROM _signalbox_schedule WHERE next_at <= ${now} ORDER BY next_at, id LIMIT 1`,
      );
      if (row === undefined) return null;
      const attempts = nextAttempt(requireNumber(row.attempts), isResumed);
      if (attempts <= fromStoredRetry(row.retry).maxAttempts) return row;
      requireChange(this.#giveUp(row, "the process ended while the last attempt ran"));
    }
  }

  #fail(row: ScheduleRow, error: unknown): boolean {
    const policy = fromStoredRetry(row.retry);
    if (row.attempts >= policy.maxAttempts) {
      this.#giveUp(row, errorText(error));
      return true;
    }
    const nextAt = this.#clock.now() + retryDelay(row.attempts, policy);
    this.#tables.change(sql`UPDATE _signalbox_schedule SET next_at = ${nextAt} WHERE id = ${row.id}`);
    this.#onChange();
    return false;
  }

  /** A schedule that runs once becomes a dead letter; a recurring one continues with its next due time. */
  #giveUp(row: ScheduleRow, error: string): number {
    if (row.type === "scheduled" || row.type === "delayed") {
      this.#deadLetters.add({
        id: row.id,
        origin: "schedule",
        callback: row.callback,
        payload: row.payload,
        retry: row.retry,
        attempts: row.attempts,
        error,
        createdAt: row.created_at,
      });
    }
    return this.#moveOn(row);
  }

  /** Deletes a schedule that does not run again, or stores the next due time of a recurring one. Returns 0 if it was cancelled meanwhile. */
  #moveOn(row: ScheduleRow): number {
    const now = this.#clock.now();
    const following = nextDue(row, now);
    // A recurring schedule that ran before its time has that time still before it.
    const next = following !== null && row.due > now ? row.due : following;
    if (next !== null && !(next > now)) throw new DamagedWorkError();
    const { changes } = this.#tables.change(
      next === null
        ? sql`DELETE FROM _signalbox_schedule WHERE id = ${row.id}`
        : sql`UPDATE _signalbox_schedule SET due = ${next}, next_at = ${next}, attempts = 0 WHERE id = ${row.id}`,
    );
    this.#onChange();
    return changes;
  }

  #insert(timing: Timing, callback: string, payload: unknown, options: ScheduleOptions): Schedule {
    const { type, spec, due } = timing;
    const retry = toStoredRetry(options.retry);
    const stored = toStoredPayload(payload);
    if (options.idempotent === true) {
      const equal = this.#findEqual(timing, callback, stored);
      if (equal !== undefined) return toSchedule(equal);
    }
    const now = this.#clock.now();
    const id = ulid(now);
    this.#tables.insert(
      sql`INSERT INTO _signalbox_schedule (id, type, callback, payload, spec, retry, due, next_at, created_at)
          VALUES (${id}, ${type}, ${callback}, ${stored}, ${spec}, ${retry}, ${due}, ${due}, ${now})`,
    );
    this.#onChange();
    return toSchedule({
      ...timing,
      id,
      callback,
      payload: stored,
      retry,
      attempts: 0,
      next_at: due,
      created_at: now,
    });
  }

  #findEqual({ type, spec, due }: Timing, callback: string, payload: string | null): ScheduleRow | undefined {
    return this.#tables
      .all<ScheduleRow>(
        sql`SELECT * FROM _signalbox_schedule WHERE callback = ${callback} AND type = ${type} ORDER BY id`,
      )
      .find(
        (row) => row.payload === payload && row.spec === spec && (type !== "scheduled" || row.due === due),
      );
  }
}
