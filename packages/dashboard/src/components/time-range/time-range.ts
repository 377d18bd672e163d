/** Time ranges of charts and lists: the last hour up to the last month, or any two times. */

export type Step = "minute" | "hour" | "day";

export interface TimeRange {
  /** `1h`, `24h`, `7d`, `30d` or `custom`. */
  readonly name: string;
  /** Milliseconds; `from` is inclusive, `to` exclusive. Both are multiples of the step. */
  readonly from: number;
  readonly to: number;
  /** Distance of two points in a chart. */
  readonly step: Step;
  /** "last 24 hours", "3 Nov, 10:00 – 4 Nov, 12:00" */
  readonly title: string;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
export const STEP_MS: Readonly<Record<Step, number>> = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS };

export const RANGES = [
  { name: "1h", title: "Last hour", spanMs: HOUR_MS },
  { name: "24h", title: "Last 24 hours", spanMs: DAY_MS },
  { name: "7d", title: "Last 7 days", spanMs: 7 * DAY_MS },
  { name: "30d", title: "Last 30 days", spanMs: 30 * DAY_MS },
] as const;

export const CUSTOM = "custom";
/** Longer ranges begin later: a chart with a bar for each day of a century would stop the page. */
const MAX_SPAN_MS = 400 * DAY_MS;

/** At most about four hundred points: more do not fit a chart. */
export function stepOf(spanMs: number): Step {
  if (spanMs <= 3 * HOUR_MS) return "minute";
  return spanMs <= 8 * DAY_MS ? "hour" : "day";
}

/** The range with this name at `now`. `from` and `to` are those of a custom range; times that cannot be read or ordered mean the default. */
export function resolveRange(
  name: string,
  from: string,
  to: string,
  now: number,
  initial: string,
): TimeRange {
  if (name === CUSTOM) {
    const start = Date.parse(from);
    const end = to === "" ? now : Date.parse(to);
    if (start < end) return custom(Math.max(start, end - MAX_SPAN_MS), end);
  }
  const known =
    RANGES.find((range) => range.name === name) ??
    RANGES.find((range) => range.name === initial) ??
    RANGES[1];
  const step = stepOf(known.spanMs);
  // Days are those of the usage sums, which are UTC days; a range of days still ends with the current hour.
  const align = step === "minute" ? MINUTE_MS : HOUR_MS;
  const end = Math.ceil(now / align) * align;
  return { name: known.name, from: end - known.spanMs, to: end, step, title: known.title.toLowerCase() };
}

function custom(start: number, end: number): TimeRange {
  const step = stepOf(end - start);
  const align = step === "minute" ? MINUTE_MS : HOUR_MS;
  const from = Math.floor(start / align) * align;
  const to = Math.ceil(end / align) * align;
  return { name: CUSTOM, from, to, step, title: `${shortDate(from)} – ${shortDate(to)}` };
}

/** The range of the same length before it. */
export function rangeBefore({ from, to }: Pick<TimeRange, "from" | "to">): { from: number; to: number } {
  return { from: from - (to - from), to: from };
}

/** Every minute, hour or day of the range, including those without data. */
export function timesOf({ from, to, step }: Pick<TimeRange, "from" | "to" | "step">): number[] {
  const size = STEP_MS[step];
  const times: number[] = [];
  for (let time = Math.floor(from / size) * size; time < to; time += size) times.push(time);
  return times;
}

/** The time of a point in full, for tooltips and tables. */
export function formatPoint(step: Step): (time: number) => string {
  if (step === "day")
    return (time) =>
      new Date(time).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
  return shortDate;
}

/** The time of a point for an axis: the hour within a day, the day beyond. */
export function formatTick({
  from,
  to,
  step,
}: Pick<TimeRange, "from" | "to" | "step">): (time: number) => string {
  if (step === "day") return formatPoint(step);
  if (to - from <= 2 * DAY_MS)
    return (time) =>
      new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
  return (time) => new Date(time).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

function shortDate(time: number): string {
  return new Date(time).toLocaleString(undefined, {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
  });
}
