const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const UNITS: readonly [limit: number, unit: number, name: string][] = [
  [MINUTE, SECOND, "s"],
  [HOUR, MINUTE, "min"],
  [DAY, HOUR, "h"],
  [30 * DAY, DAY, "d"],
];

/** "now", "4 min ago", "in 3 d", or a date if the time is more than a month away. */
export function shortTime(time: number, now: number): string {
  const distance = Math.abs(now - time);
  if (distance < 5 * SECOND) return "now";
  for (const [limit, unit, name] of UNITS) {
    if (distance < limit) {
      const amount = `${Math.floor(distance / unit)} ${name}`;
      return time > now ? `in ${amount}` : `${amount} ago`;
    }
  }
  return new Date(time).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}
