/** A schedule as it is stored and as agents see it, and the times at which it is due. */
import { Cron } from "croner";
import { fromStoredPayload } from "./payload.ts";

export type ScheduleType = "scheduled" | "delayed" | "cron" | "interval";

export interface Schedule<Payload = unknown> {
  readonly id: string;
  /** The method that it calls. */
  readonly callback: string;
  readonly payload: Payload;
  readonly type: ScheduleType;
  /** The next due time: seconds since the epoch. */
  readonly time: number;
  readonly delayInSeconds?: number;
  readonly cron?: string;
  readonly intervalSeconds?: number;
}

/** A schedule as operators see it. */
export interface ScheduleState extends Schedule {
  /** Attempts of the current run so far. */
  readonly attempts: number;
}

export interface ScheduleRow {
  readonly id: string;
  readonly type: ScheduleType;
  readonly callback: string;
  readonly payload: string | null;
  /** The cron expression, or the delay or interval in milliseconds. */
  readonly spec: string | null;
  readonly retry: string | null;
  readonly attempts: number;
  readonly due: number;
  readonly next_at: number;
  readonly created_at: number;
}

/** When a schedule is due that is added now. */
export type Timing = Pick<ScheduleRow, "type" | "spec" | "due">;

/** The last time that JavaScript and ISO 8601 texts of it can express. */
const MAX_TIME = 8_640_000_000_000_000;
/** Croner accepts such a text as the time of a single run; here a `Date` is that. */
const ISO_TIME = /^\s*[+-]?\d{4,6}-\d{2}/;

/** Throws a `RangeError` for a date, delay or cron expression that is invalid. */
export function parseTiming(when: Date | string | number, now: number): Timing {
  if (when instanceof Date) {
    const due = when.getTime();
    if (Number.isNaN(due)) throw new RangeError("the date is invalid");
    return { type: "scheduled", spec: null, due };
  }
  if (typeof when === "number") {
    if (!Number.isFinite(when) || when < 0)
      throw new RangeError("the delay must be a number of seconds, 0 or more");
    const delayMs = Math.round(when * 1000);
    if (now + delayMs > MAX_TIME) throw new RangeError("the delay is too long");
    return { type: "delayed", spec: String(delayMs), due: now + delayMs };
  }
  if (ISO_TIME.test(when)) throw new RangeError(`"${when}" is not a cron expression; pass a Date for a time`);
  const due = nextOfCron(when, now);
  if (due === null) throw new RangeError(`the cron expression "${when}" matches no time in the future`);
  return { type: "cron", spec: when, due };
}

export function parseInterval(seconds: number, now: number): Timing {
  if (!Number.isFinite(seconds) || seconds <= 0)
    throw new RangeError("the interval must be a number of seconds greater than 0");
  const intervalMs = Math.max(1, Math.round(seconds * 1000));
  if (now + intervalMs > MAX_TIME) throw new RangeError("the interval is too long");
  return { type: "interval", spec: String(intervalMs), due: now + intervalMs };
}

/** The next due time of a recurring schedule after `now`, past all that were missed; null for one that does not run again. */
export function nextDue(row: Timing, now: number): number | null {
  switch (row.type) {
    case "scheduled":
    case "delayed":
      return null;
    case "cron":
      return nextOfCron(row.spec ?? "", Math.max(now, row.due));
    case "interval": {
      const intervalMs = Number(row.spec);
      const missed = Math.max(0, Math.floor((now - row.due) / intervalMs));
      return row.due + (missed + 1) * intervalMs;
    }
  }
}

export function toSchedule(row: ScheduleRow): Schedule {
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

/** The first time after `from` that matches the cron expression of five or six fields (the first of six is the second), in UTC; null for none. */
function nextOfCron(text: string, from: number): number | null {
  try {
    const next = new Cron(text, { timezone: "UTC", mode: "5-or-6-parts" }).nextRun(new Date(from));
    return next?.getTime() ?? null;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RangeError(`"${text}" is not a cron expression: ${reason}`, { cause });
  }
}
