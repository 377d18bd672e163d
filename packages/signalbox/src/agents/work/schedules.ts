/**
 * Durable schedules of one instance: at a time, after a delay, by cron text, or every so often.
 *
 * Invariants:
 * 1. Timers are derived from the rows; a row is the only truth about what is due, before and after a restart.
 * 2. A schedule that was missed, however often, runs once; its next time lies in the future.
 * 3. A recurring schedule exists once per method, rule and payload; asking for it again gives the one there is. One-shots asked for in
 *    `onStart` follow the same rule, because `onStart` runs at every wake.
 * 4. The next time of a recurring schedule, or the end of a one-shot, is stored in the transaction of the handler's last segment.
 */
import { Cron } from "croner";
import type { Clock } from "../../core/clock.ts";
import { fullJitterDelay } from "../../core/retry.ts";
import { ulid } from "../../core/ulid.ts";
import { sql } from "../../core/sql.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { fromStoredPayload, toStoredPayload } from "./payload.ts";
import { fromStoredRetry, type RetryOptions, toStoredRetry } from "./retry-options.ts";
import type { WorkTables } from "./work-tables.ts";
import { errorText } from "./work-queue.ts";

export type ScheduleType = "scheduled" | "delayed" | "cron" | "interval";

export interface Schedule<Payload = unknown> {
  readonly id: string;
  /** Method it calls. */
  readonly callback: string;
  readonly payload: Payload;
  readonly type: ScheduleType;
  /** When it is due next: seconds since the epoch. */
  readonly time: number;
  readonly delayInSeconds?: number;
  readonly cron?: string;
  readonly intervalSeconds?: number;
}

export interface ScheduleOptions {
  readonly retry?: RetryOptions;
  /** Reuse an equal schedule instead of adding another. Default: true for cron text and inside `onStart`. */
  readonly idempotent?: boolean;
}

export interface ScheduleCriteria {
  readonly id?: string;
  readonly type?: ScheduleType;
  readonly timeRange?: { readonly start?: Date; readonly end?: Date };
}

interface ScheduleRow {
  readonly id: string;
  readonly type: ScheduleType;
  readonly callback: string;
  readonly payload: string | null;
  readonly spec: string | null;
  readonly retry: string | null;
  readonly attempts: number;
  readonly due: number;
  readonly next_at: number;
  readonly created_at: number;
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
    const now = this.#clock.now();
    if (when instanceof Date) {
      const due = when.getTime();
      if (Number.isNaN(due)) throw new RangeError("the date is invalid");
      return this.#insert("scheduled", due, null, callback, payload, options);
    }
    if (typeof when === "number") {
      if (!Number.isFinite(when) || when < 0)
        throw new RangeError("the delay must be a number of seconds, 0 or more");
      const spec = String(Math.round(when * 1000));
      return this.#insert("delayed", now + Math.round(when * 1000), spec, callback, payload, options);
    }
    return this.#insert("cron", nextOfCron(when, now), when, callback, payload, {
      idempotent: true,
      ...options,
    });
  }

  addEvery(seconds: number, callback: string, payload: unknown, options: ScheduleOptions): Schedule {
    if (!Number.isFinite(seconds) || seconds <= 0)
      throw new RangeError("the interval must be a number of seconds greater than 0");
    const interval = Math.max(1, Math.round(seconds * 1000));
    const due = this.#clock.now() + interval;
    return this.#insert("interval", due, String(interval), callback, payload, {
      idempotent: true,
      ...options,
    });
  }

  cancel(id: string): boolean {
    return this.#tables.change(sql`DELETE FROM _signalbox_schedule WHERE id = ${id}`).changes > 0;
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
    return (
      this.#tables.get<{ at: number | null }>(sql`SELECT min(next_at) AS at FROM _signalbox_schedule`)?.at ??
      null
    );
  }

  /** Takes the schedule that has been due longest and counts the attempt; null when none is due. Runs in a transaction of its own. */
  begin(): ScheduleAttempt | null {
    const now = this.#clock.now();
    const row = this.#tables.get<ScheduleRow>(
      sql`SELECT * FROM _signalbox_schedule WHERE next_at <= ${now} ORDER BY next_at, id LIMIT 1`,
    );
    if (row === undefined) return null;
    const policy = fromStoredRetry(row.retry);
    if (row.attempts >= policy.maxAttempts) {
      this.#giveUp(row, "the process ended while the last attempt ran");
      return this.begin();
    }
    const attempts = row.attempts + 1;
    this.#tables.change(sql`UPDATE _signalbox_schedule SET attempts = ${attempts} WHERE id = ${row.id}`);
    return {
      schedule: toSchedule(row),
      complete: () => {
        this.#moveOn(row);
      },
      fail: (error) => {
        if (attempts >= policy.maxAttempts) {
          this.#giveUp({ ...row, attempts }, errorText(error));
          return true;
        }
        const nextAt = this.#clock.now() + Math.ceil(fullJitterDelay(attempts, policy));
        this.#tables.change(sql`UPDATE _signalbox_schedule SET next_at = ${nextAt} WHERE id = ${row.id}`);
        this.#onChange();
        return false;
      },
    };
  }

  #giveUp(row: ScheduleRow, error: string): void {
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
    this.#moveOn(row);
  }

  /** A one-shot is over; a recurring one gets its next time, past all those it missed. */
  #moveOn(row: ScheduleRow): void {
    const next = nextDue(row, this.#clock.now());
    if (next === null) this.#tables.change(sql`DELETE FROM _signalbox_schedule WHERE id = ${row.id}`);
    else {
      this.#tables.change(
        sql`UPDATE _signalbox_schedule SET due = ${next}, next_at = ${next}, attempts = 0 WHERE id = ${row.id}`,
      );
    }
    this.#onChange();
  }

  #insert(
    type: ScheduleType,
    due: number,
    spec: string | null,
    callback: string,
    payload: unknown,
    options: ScheduleOptions,
  ): Schedule {
    const retry = toStoredRetry(options.retry);
    const stored = toStoredPayload(payload);
    if (options.idempotent === true) {
      const same = this.#findSame(type, due, spec, callback, stored);
      if (same !== undefined) return toSchedule(same);
    }
    const now = this.#clock.now();
    const row: ScheduleRow = {
      id: ulid(now),
      type,
      callback,
      payload: stored,
      spec,
      retry,
      attempts: 0,
      due,
      next_at: due,
      created_at: now,
    };
    this.#tables.insert(
      sql`INSERT INTO _signalbox_schedule (id, type, callback, payload, spec, retry, due, next_at, created_at)
          VALUES (${row.id}, ${type}, ${callback}, ${stored}, ${spec}, ${retry}, ${due}, ${due}, ${now})`,
    );
    this.#onChange();
    return toSchedule(row);
  }

  #findSame(
    type: ScheduleType,
    due: number,
    spec: string | null,
    callback: string,
    payload: string | null,
  ): ScheduleRow | undefined {
    return this.#tables
      .all<ScheduleRow>(
        sql`SELECT * FROM _signalbox_schedule WHERE callback = ${callback} AND type = ${type} ORDER BY id`,
      )
      .find(
        (row) => row.payload === payload && row.spec === spec && (type !== "scheduled" || row.due === due),
      );
  }
}

function nextDue(row: ScheduleRow, now: number): number | null {
  switch (row.type) {
    case "scheduled":
    case "delayed":
      return null;
    case "cron":
      return nextOfCron(row.spec ?? "", Math.max(now, row.due));
    case "interval": {
      const interval = Number(row.spec);
      const missed = Math.max(0, Math.floor((now - row.due) / interval));
      return row.due + (missed + 1) * interval;
    }
  }
}

/** The first moment after `from` that five-field cron text names, in UTC. */
function nextOfCron(text: string, from: number): number {
  let next: Date | null;
  try {
    next = new Cron(text, { timezone: "UTC", mode: "5-part" }).nextRun(new Date(from));
  } catch (cause) {
    throw new RangeError(
      `"${text}" is not cron text: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        cause,
      },
    );
  }
  if (next === null) throw new RangeError(`the cron text "${text}" names no time in the future`);
  return next.getTime();
}

function toSchedule(row: ScheduleRow): Schedule {
  return {
    id: row.id,
    callback: row.callback,
    payload: fromStoredPayload(row.payload),
    type: row.type,
    time: Math.floor(row.due / 1000),
    ...(row.type === "delayed" ? { delayInSeconds: Number(row.spec) / 1000 } : {}),
    ...(row.type === "cron" ? { cron: row.spec ?? "" } : {}),
    ...(row.type === "interval" ? { intervalSeconds: Number(row.spec) / 1000 } : {}),
  };
}
