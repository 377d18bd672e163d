/** Durations and times of workflows: milliseconds, or a text such as `10 minutes`. */

const SECOND = 1000;
const DAY = 24 * 3600 * SECOND;
const UNITS: Readonly<Record<string, number>> = {
  second: SECOND,
  minute: 60 * SECOND,
  hour: 3600 * SECOND,
  day: DAY,
  week: 7 * DAY,
  month: 30 * DAY,
  year: 365 * DAY,
};

/** Milliseconds. Throws for other texts and for numbers that are no duration. */
export function parseDuration(duration: unknown): number {
  if (typeof duration === "number" && Number.isFinite(duration) && duration >= 0) return duration;
  const match = typeof duration === "string" ? /^(\d+(?:\.\d+)?) ?([a-z]+?)s?$/.exec(duration.trim()) : null;
  const unit = UNITS[match?.[2] ?? ""];
  if (match === null || unit === undefined)
    throw new TypeError(
      `a duration is a number of milliseconds or a text such as "10 minutes", found ${JSON.stringify(duration)}`,
    );
  return Math.round(Number(match[1]) * unit);
}

/** Milliseconds since 1970 of a Date or a number. */
export function parseTime(time: unknown): number {
  const ms = time instanceof Date ? time.getTime() : time;
  if (typeof ms !== "number" || !Number.isFinite(ms))
    throw new TypeError("a time is a Date or a number of milliseconds since 1970");
  return ms;
}
