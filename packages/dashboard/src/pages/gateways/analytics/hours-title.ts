import { formatPoint, STEP_MS, type TimeRange } from "../../../components/time-range/time-range.ts";

/** The title of sums of whole hours: a range of minutes begins with the hour of its start. */
export function hoursTitle({ from, step, title }: TimeRange): string {
  if (step !== "minute") return title;
  return `since ${formatPoint("hour")(Math.floor(from / STEP_MS.hour) * STEP_MS.hour)}`;
}
