/**
 * The windows that limits count in. A window divides time into slots; the amount of a slot counts until the slot's end.
 *
 * - Fixed seconds: one slot of the window's length, aligned to the clock.
 * - Sliding seconds: slots of a sixtieth of the window. A slot counts entirely while any part of it is inside the window, so a limit is
 *   never exceeded, at the cost of being stricter. Rates with a small limit have one slot for each moment, and are exact.
 * - `day`, `week` (from Monday), `month`: one slot from midnight to midnight in a time zone, whatever the length of the days.
 * - None (`null`): one slot that never ends, for prepaid credit.
 */
import { formatOf } from "../../core/time-zone.ts";

export type CalendarUnit = "day" | "week" | "month";

/** Seconds, a calendar unit, or null for an amount that never comes back. */
export type WindowLength = number | CalendarUnit | null;

export interface Window {
  /** Windows with the same key have the same slots. */
  readonly key: string;
  /** For messages: `per 3600 s`, `per month (Europe/Berlin)`, `in total`. */
  readonly text: string;
  /** Start of the slot that contains the time. */
  slotOf(time: number): number;
  /** When the amount of a slot stops counting. */
  endOf(slot: number): number;
  /** The oldest slot whose amount counts at the time. */
  oldestAt(time: number): number;
}

/** Later than every time; exact in a double and in an SQL BIGINT. */
export const NEVER = Number.MAX_SAFE_INTEGER;
const SLIDING_SLOTS = 60;
const DAY_MS = 86_400_000;

export function createWindow(
  length: WindowLength,
  technique: "fixed" | "sliding" = "fixed",
  timeZone = "UTC",
): Window {
  if (length === null) return PREPAID;
  if (typeof length === "string") return new CalendarWindow(length, timeZone);
  return technique === "fixed" ? fixedWindow(length) : slidingWindow(length);
}

/** Of a limit of requests: a bucket has at most as many slots as the limit, so a small one needs no coarser slots. */
export function createRateWindow(limit: number, seconds: number, technique: "fixed" | "sliding"): Window {
  if (technique === "fixed" || limit > SLIDING_SLOTS) return createWindow(seconds, technique);
  const ms = seconds * 1000;
  return {
    key: `${seconds} exact`,
    text: `per ${seconds} s (sliding)`,
    slotOf: (time) => time,
    endOf: (slot) => slot + ms,
    oldestAt: (time) => time - ms + 1,
  };
}

const PREPAID: Window = {
  key: "credit",
  text: "in total",
  slotOf: () => 0,
  endOf: () => NEVER,
  oldestAt: () => 0,
};

function fixedWindow(seconds: number): Window {
  const ms = seconds * 1000;
  return {
    key: `${seconds} fixed`,
    text: `per ${seconds} s (fixed)`,
    slotOf: (time) => Math.floor(time / ms) * ms,
    endOf: (slot) => slot + ms,
    oldestAt: (time) => Math.floor(time / ms) * ms,
  };
}

function slidingWindow(seconds: number): Window {
  const ms = seconds * 1000;
  const slotMs = Math.max(1, Math.ceil(ms / SLIDING_SLOTS));
  return {
    key: `${seconds} sliding`,
    text: `per ${seconds} s (sliding)`,
    slotOf: (time) => Math.floor(time / slotMs) * slotMs,
    endOf: (slot) => slot + slotMs + ms,
    oldestAt: (time) => (Math.floor((time - slotMs - ms) / slotMs) + 1) * slotMs,
  };
}

class CalendarWindow implements Window {
  readonly key: string;
  readonly text: string;
  readonly #unit: CalendarUnit;
  readonly #timeZone: string;
  #start = Number.NaN;
  #end = Number.NaN;

  constructor(unit: CalendarUnit, timeZone: string) {
    this.#unit = unit;
    this.#timeZone = timeZone;
    this.key = `${unit} ${timeZone}`;
    this.text = `per ${unit} (${timeZone})`;
  }

  slotOf(time: number): number {
    // The comparison is false for the initial NaN. Nearly every call asks for the current slot.
    if (time >= this.#start && time < this.#end) return this.#start;
    const [start, end] = this.#bounds(time);
    this.#start = start;
    this.#end = end;
    return start;
  }

  endOf(slot: number): number {
    return slot === this.#start ? this.#end : this.#bounds(slot)[1];
  }

  oldestAt(time: number): number {
    return this.slotOf(time);
  }

  #bounds(time: number): readonly [number, number] {
    const { year, month, day } = localDate(time, this.#timeZone);
    const at = (y: number, m: number, d: number) => startOfDay(y, m, d, this.#timeZone);
    switch (this.#unit) {
      case "day":
        return [at(year, month, day), at(year, month, day + 1)];
      case "week": {
        const sinceMonday = (new Date(Date.UTC(year, month, day)).getUTCDay() + 6) % 7;
        return [at(year, month, day - sinceMonday), at(year, month, day - sinceMonday + 7)];
      }
      case "month":
        return [at(year, month, 1), at(year, month + 1, 1)];
    }
  }
}

/** The window with this key. */
export function parseWindow(key: string): Window {
  if (key === PREPAID.key) return PREPAID;
  const [length = "", form = ""] = key.split(" ");
  const seconds = Number(length);
  if (Number.isNaN(seconds)) return createWindow(length as CalendarUnit, "fixed", form);
  const window =
    form === "exact" ? createRateWindow(1, seconds, "sliding") : createWindow(seconds, form as "fixed");
  // A rule may extend the key.
  return { ...window, key };
}

interface LocalDate {
  readonly year: number;
  /** From 0. */
  readonly month: number;
  readonly day: number;
  /** The local date and time as if it were UTC. */
  readonly asUtc: number;
}

function localDate(time: number, timeZone: string): LocalDate {
  const parts: Record<string, number> = {};
  for (const { type, value } of formatOf(timeZone).formatToParts(time)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return { year, month: month - 1, day, asUtc: Date.UTC(year, month - 1, day, hour, minute, second) };
}

/** The first moment of a local day; days out of range carry over, as in `Date.UTC`. */
function startOfDay(year: number, month: number, day: number, timeZone: string): number {
  const wanted = Date.UTC(year, month, day);
  let time = wanted;
  // The offset at the guess may differ from the one at midnight; a second step settles it.
  for (let i = 0; i < 2; i++)
    time = wanted - (localDate(time, timeZone).asUtc - Math.floor(time / 1000) * 1000);
  // Some zones skip midnight when clocks are set forward: the day then begins at the first hour that exists.
  return localDate(time, timeZone).asUtc >= wanted ? time : nextTransition(time, wanted, timeZone);
}

/** The first moment in the day from `before` on whose local time is not before `wanted`. */
function nextTransition(before: number, wanted: number, timeZone: string): number {
  let low = before;
  let high = before + DAY_MS;
  while (high - low > 1000) {
    const middle = Math.floor((low + high) / 2000) * 1000;
    if (localDate(middle, timeZone).asUtc >= wanted) high = middle;
    else low = middle;
  }
  return high;
}
