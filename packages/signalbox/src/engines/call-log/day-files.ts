/** Names of the day files: one file per UTC day. The id of a row contains its time and thus determines its file. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ulidTime } from "../../core/ulid.ts";

export const DAY_MS = 86_400_000;
const NAME = /^calls-(\d{4}-\d{2}-\d{2})\.db$/;

/** `2026-11-15`; the order of strings is the order of time. */
export type Day = string;

export function dayOf(time: number): Day {
  return new Date(time).toISOString().slice(0, 10);
}

let lastDay = { start: Number.NaN, name: "" };

export function dayOfId(id: string): Day {
  const time = ulidTime(id);
  // Successive rows nearly always have the same day.
  if (!(time >= lastDay.start && time < lastDay.start + DAY_MS)) {
    lastDay = { start: Math.floor(time / DAY_MS) * DAY_MS, name: dayOf(time) };
  }
  return lastDay.name;
}

export function startOfDay(day: Day): number {
  return Date.parse(`${day}T00:00:00Z`);
}

export function dayPath(folder: string, day: Day): string {
  return join(folder, `calls-${day}.db`);
}

/** Oldest first. */
export function listDays(folder: string): Day[] {
  return readdirSync(folder)
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .sort();
}

/** The writer must have closed its connection. A reader that has the file open can still read it until it closes the file. */
export function removeDay(folder: string, day: Day): void {
  const path = dayPath(folder, day);
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}
