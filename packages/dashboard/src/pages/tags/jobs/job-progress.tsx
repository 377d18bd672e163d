import type { TagJob } from "@signalbox/client";
import { Badge } from "../../../components/badge.tsx";
import { duration, exactCount } from "../../../format/number.ts";
import { remainingMs, TONES } from "./job-words.ts";

/** The state of a job; while it runs also how far it is. */
export function JobProgress({ job }: { readonly job: TagJob }) {
  const { state, total, processed, started_at: startedAt } = job;
  if (state !== "running") return <Badge tone={TONES[state]}>{state}</Badge>;
  const remaining = remainingMs(job, Date.now());
  return (
    <div className="job-progress">
      <progress max={Math.max(total, 1)} value={Math.min(processed, total)} aria-label="Progress" />
      <span className="small nowrap">
        {startedAt === null ? "waiting" : `${exactCount(processed)} of ${exactCount(total)}`}
        {remaining !== null && remaining >= 1000 && (
          <span className="muted"> · about {duration(remaining)} left</span>
        )}
      </span>
    </div>
  );
}
