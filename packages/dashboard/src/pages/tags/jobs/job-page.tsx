/** One job: how far it is, what it has done, and the resources that it could not change. */
import type { TagJob } from "@signalbox/client";
import { useState } from "react";
import { DetailList } from "../../../components/detail-list.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Time } from "../../../components/time.tsx";
import { duration, exactCount } from "../../../format/number.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useAccount, useAccountPaths } from "../../../session/session.ts";
import { CancelJob } from "./cancel-job.tsx";
import { JobChange } from "./job-change.tsx";
import { JobFailures } from "./job-failures.tsx";
import { JobFilters } from "./job-filters.tsx";
import { JobProgress } from "./job-progress.tsx";
import { RUNNING_REFRESH_MS } from "./job-words.ts";

export function JobPage({ id }: { readonly id: string }) {
  const { tags, id: accountId } = useAccount();
  const { page } = useAccountPaths();
  const [isEnded, setEnded] = useState(false);
  const job = useResource(
    `tag job ${accountId} ${id}`,
    (signal) => tags.job(id, { signal }),
    isEnded ? {} : { refreshMs: RUNNING_REFRESH_MS },
  );
  // A job that has ended does not change any more.
  const hasEnded = job.value !== undefined && job.value.state !== "running";
  if (hasEnded !== isEnded) setEnded(hasEnded);
  return (
    <>
      <PageHeader
        title="Job"
        crumbs={[
          { title: "Tags", to: page("tags") },
          { title: "Jobs", to: page("tags", "jobs") },
        ]}
        actions={job.value !== undefined && <CancelJob job={job.value} onDone={job.reload} />}
      >
        <code>{id}</code>
      </PageHeader>
      <ResourceView of={job}>
        {(value) => (
          <>
            <section className="panel" aria-label="Progress and result">
              <DetailList
                items={[
                  ["State", <JobProgress key="state" job={value} />],
                  ["Change", <JobChange key="change" job={value} />],
                  ["Resources", <JobFilters key="resources" query={value.query} />],
                  ["Matched at the start", exactCount(value.total)],
                  ["Changed", exactCount(value.changed)],
                  ["Already as wanted", exactCount(value.unchanged)],
                  ["Failed", exactCount(value.failed)],
                  ["Created", <Time key="created" at={value.created_at} />],
                  ["Duration", durationOf(value)],
                  ["Actor", <code key="actor">{value.actor}</code>],
                ]}
              />
            </section>
            {value.state === "failed" && (
              <p className="notice notice-bad" role="alert">
                The job ended by an internal error. The log of the service explains it. What it has changed
                stays.
              </p>
            )}
            {value.failed > 0 && <JobFailures job={value} />}
          </>
        )}
      </ResourceView>
    </>
  );
}

function durationOf({ started_at: start, ended_at: end }: TagJob): string {
  if (start === null) return "not started";
  return end === null ? "running" : duration(Date.parse(end) - Date.parse(start));
}
