/** What a job of tags does, in words. */
import type { TagJob } from "@signalbox/client";
import type { Tone } from "../../../components/badge.tsx";

/** How often a page looks again while a job runs. */
export const RUNNING_REFRESH_MS = 1000;
/** Other people and programs start jobs, too. */
export const IDLE_REFRESH_MS = 10_000;

export const TONES: Readonly<Record<TagJob["state"], Tone>> = {
  running: "accent",
  done: "good",
  cancelled: "warn",
  failed: "bad",
};

/** The filters of a job as they are written in the API; none for all tagged resources. */
export function filtersOf({ tag, type, id, name, case_insensitive }: TagJob["query"]): string[] {
  return [
    ...tag,
    ...(type.length === 0 ? [] : [`type: ${type.join(", ")}`]),
    ...(id.length === 0 ? [] : [`ID: ${id.join(", ")}`]),
    ...(name === null ? [] : [`name contains: ${name}`]),
    ...(case_insensitive ? ["upper and lower case are equal"] : []),
  ];
}

/** What is left to do is estimated from what is done; null before the first step. */
export function remainingMs(job: TagJob, now: number): number | null {
  if (job.state !== "running" || job.started_at === null || job.processed === 0) return null;
  const perResource = (now - Date.parse(job.started_at)) / job.processed;
  return Math.max(0, Math.round(perResource * (job.total - job.processed)));
}
