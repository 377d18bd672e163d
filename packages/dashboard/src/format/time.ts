/**
 * The ways in which the dashboard shows a time. A list says how long ago it was ("4 min ago"), a log whose rows are seconds apart shows the clock
 * ("18:06:57"), and a detail the exact time with its zone. All of them use the zone of the browser, 24 hours, and the day before the month.
 */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The dashboard is in English. This locale has no "PM", and no date in which month and day can be mixed up. */
const LOCALE = "en-GB";
const DAY_AND_MONTH = { day: "numeric", month: "short" } as const;
const HOUR_AND_MINUTE = { hour: "2-digit", minute: "2-digit" } as const;

const formats = {
  exact: new Intl.DateTimeFormat(LOCALE, {
    ...DAY_AND_MONTH,
    ...HOUR_AND_MINUTE,
    year: "numeric",
    second: "2-digit",
    timeZoneName: "short",
  }),
  milliseconds: new Intl.DateTimeFormat(LOCALE, {
    ...HOUR_AND_MINUTE,
    second: "2-digit",
    fractionalSecondDigits: 3,
  }),
  weekday: new Intl.DateTimeFormat(LOCALE, { weekday: "long", day: "numeric", month: "long" }),
  seconds: new Intl.DateTimeFormat(LOCALE, { ...HOUR_AND_MINUTE, second: "2-digit" }),
  minutes: new Intl.DateTimeFormat(LOCALE, { ...DAY_AND_MONTH, ...HOUR_AND_MINUTE }),
  hour: new Intl.DateTimeFormat(LOCALE, HOUR_AND_MINUTE),
  day: new Intl.DateTimeFormat(LOCALE, DAY_AND_MONTH),
  utcDay: new Intl.DateTimeFormat(LOCALE, { ...DAY_AND_MONTH, timeZone: "UTC" }),
  date: new Intl.DateTimeFormat(LOCALE, { ...DAY_AND_MONTH, year: "numeric" }),
};

const UNITS: readonly [limit: number, unit: number, name: string][] = [
  [MINUTE, SECOND, "s"],
  [HOUR, MINUTE, "min"],
  [DAY, HOUR, "h"],
  // A token for 30 days expires "in 30 d".
  [31 * DAY, DAY, "d"],
];

/**
 * The time of something that has happened: "just now", "4 min ago", or a date if it is more than a month ago. A time after `now` is that
 * of a server whose clock is ahead of the browser's, so it is "just now", too.
 */
export function pastTime(time: number, now: number): string {
  const distance = now - time;
  if (distance < 5 * SECOND) return "just now";
  for (const [limit, unit, name] of UNITS) {
    if (distance < limit) return `${Math.floor(distance / unit)} ${name} ago`;
  }
  return formats.date.format(time);
}

/** The time of something that is due: "in 3 d", rounded, so that a period of three days that has just begun is "in 3 d"; "now" when it is due. */
export function dueTime(time: number, now: number): string {
  const distance = time - now;
  if (distance <= -5 * SECOND) return pastTime(time, now);
  if (distance < SECOND) return "now";
  for (const [limit, unit, name] of UNITS) {
    const amount = Math.round(distance / unit);
    if (amount * unit < limit) return `in ${amount} ${name}`;
  }
  return formats.date.format(time);
}

/** "17 Nov 2026, 18:06:57 CET": for details and tooltips. */
export function exactTime(time: number): string {
  return formats.exact.format(time);
}

/** The clock within the last day, the day and the minute before: for rows of a log, which are seconds apart. */
export function clockTime(time: number, now: number): string {
  return now - time < DAY ? formats.seconds.format(time) : formats.minutes.format(time);
}

/** "18:06:57.120": for a timeline, where what an event caused follows it within a second. */
export function millisecondTime(time: number): string {
  return formats.milliseconds.format(time);
}

/** "Tuesday 17 November" */
export function weekdayOf(time: number): string {
  return formats.weekday.format(time);
}

/** "17 Nov, 18:06": for a time in a chart, and the ends of a time range. */
export function minuteTime(time: number): string {
  return formats.minutes.format(time);
}

/** "18:06" */
export function hourTime(time: number): string {
  return formats.hour.format(time);
}

/** "17 Nov" */
export function dayTime(time: number): string {
  return formats.day.format(time);
}

/** The day of a sum of usage, which is a UTC day. */
export function utcDayTime(time: number): string {
  return formats.utcDay.format(time);
}

/** A length of time in its largest whole unit: "30 d", "1 h", "90 s". */
export function spanText(seconds: number): string {
  for (const [size, unit] of [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
  ] as const)
    if (seconds >= size && seconds % size === 0) return `${seconds / size} ${unit}`;
  return `${seconds} s`;
}
