/** Days as PostgreSQL's tables have them: the start of a UTC day in milliseconds, and the ids of a day. */
import { ulidFloor, ulidTime } from "../../../core/ulid.ts";
import { DAY_MS, dayOf } from "../day-files.ts";

/** Start of the day in milliseconds. */
export type DayStart = number;

export function dayStartOf(id: string): DayStart {
  return startOfDayAt(ulidTime(id));
}

export function startOfDayAt(time: number): DayStart {
  return Math.floor(time / DAY_MS) * DAY_MS;
}

/** The ids of the day: from the first, inclusive, to the second. */
export function idsOf(day: DayStart): readonly [string, string] {
  return [ulidFloor(day), ulidFloor(day + DAY_MS)];
}

/** `20261115`, the end of the names of the day's partitions. */
export function partitionSuffix(day: DayStart): string {
  return dayOf(day).replaceAll("-", "");
}
