const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

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
  return dateOf(time);
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
  return dateOf(time);
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

function dateOf(time: number): string {
  return new Date(time).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}
