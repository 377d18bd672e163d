/** Time ranges of charts and lists: the last hour up to the last month, or any two times. */

import { dayTime, hourTime, minuteTime, utcDayTime } from "../../format/time.ts";

export type Step = "minute" | "hour" | "day";

export interface TimeRange {
  /** `1h`, `24h`, `7d`, `30d` or `custom`. */
  readonly name: string;
  /** Milliseconds; `from` is inclusive, `to` exclusive. Both are multiples of the step. */
  readonly from: number;
  readonly to: number;
  /** The unit of the sums from the service. */
  readonly step: Step;
  /** Distance of two points in a chart, in milliseconds: one step or several. */
  readonly bucketMs: number;
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

/** The unit of the sums that the service is asked for. */
export function stepOf(spanMs: number): Step {
  if (spanMs <= 3 * HOUR_MS) return "minute";
  return spanMs <= 8 * DAY_MS ? "hour" : "day";
}

/** Numbers of steps that make a round bucket, and how many buckets a chart has at most: more would be thinner than the gaps between them. */
const BUCKETS: Readonly<Record<Step, { readonly sizes: readonly number[]; readonly most: number }>> = {
  minute: { sizes: [1, 2, 5, 10], most: 60 },
  hour: { sizes: [1, 3, 6, 12], most: 48 },
  day: { sizes: [1, 7, 14], most: 60 },
};

function bucketOf(spanMs: number, step: Step): number {
  const { sizes, most } = BUCKETS[step];
  const steps = spanMs / STEP_MS[step];
  return STEP_MS[step] * (sizes.find((size) => steps <= size * most) ?? sizes.at(-1) ?? 1);
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
  return {
    name: known.name,
    from: end - known.spanMs,
    to: end,
    step,
    bucketMs: bucketOf(known.spanMs, step),
    title: known.title.toLowerCase(),
  };
}

function custom(start: number, end: number): TimeRange {
  const step = stepOf(end - start);
  const align = step === "minute" ? MINUTE_MS : HOUR_MS;
  const from = Math.floor(start / align) * align;
  const to = Math.ceil(end / align) * align;
  const title = `${minuteTime(from)} – ${minuteTime(to)}`;
  return { name: CUSTOM, from, to, step, bucketMs: bucketOf(to - from, step), title };
}

/** The range of the same length before it. */
export function rangeBefore({ from, to }: Pick<TimeRange, "from" | "to">): { from: number; to: number } {
  return { from: from - (to - from), to: from };
}

/** The start of the bucket of a time. */
export function bucketAt(time: number, bucketMs: number): number {
  return Math.floor(time / bucketMs) * bucketMs;
}

/** The start of every bucket of the range, including those without data. */
export function timesOf({ from, to, bucketMs }: Pick<TimeRange, "from" | "to" | "bucketMs">): number[] {
  const times: number[] = [];
  for (let time = bucketAt(from, bucketMs); time < to; time += bucketMs) times.push(time);
  return times;
}

/** "per hour", "per 6 hours" */
export function perBucket({ step, bucketMs }: Pick<TimeRange, "step" | "bucketMs">): string {
  const steps = bucketMs / STEP_MS[step];
  return steps === 1 ? `per ${step}` : `per ${steps} ${step}s`;
}

/** The time of a point in full, for tooltips and tables. */
export function formatPoint(step: Step): (time: number) => string {
  return step === "day" ? utcDayTime : minuteTime;
}

/** The time of a point for an axis: the hour within a day, the day beyond. */
export function formatTick({
  from,
  to,
  step,
}: Pick<TimeRange, "from" | "to" | "step">): (time: number) => string {
  if (step === "day") return utcDayTime;
  return to - from <= 2 * DAY_MS ? hourTime : dayTime;
}
