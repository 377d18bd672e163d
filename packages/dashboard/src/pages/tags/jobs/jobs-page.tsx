/** Changes of the tags of many resources in the background, newest first. */
import type { TagJob } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../../components/button.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { exactCount } from "../../../format/number.ts";
import { useList } from "../../../http/use-list.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import { TagsTabs } from "../tags-tabs.tsx";
import { CancelJob } from "./cancel-job.tsx";
import { JobChange } from "./job-change.tsx";
import { JobFilters } from "./job-filters.tsx";
import { JobProgress } from "./job-progress.tsx";
import { IDLE_REFRESH_MS, RUNNING_REFRESH_MS } from "./job-words.ts";

export function JobsPage() {
  const { api, page } = useAccountPaths();
  const [isRunning, setRunning] = useState(false);
  const jobs = useList<TagJob>(api("tags", "jobs"), {
    refreshMs: isRunning ? RUNNING_REFRESH_MS : IDLE_REFRESH_MS,
  });
  const isAnyRunning = jobs.value?.some(({ state }) => state === "running") ?? false;
  if (isAnyRunning !== isRunning) setRunning(isAnyRunning);
  return (
    <>
      <PageHeader title="Tags">
        Jobs change the tags of all resources that match, in the background, one job after the other.
      </PageHeader>
      <TagsTabs current="jobs" />
      <ResourceView of={jobs}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title="No jobs yet">
              <p>
                To change many resources, filter them under Resources, select all of a page, and choose Edit
                all in the background. Programs start jobs with <code>POST /tags/jobs</code>.
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Jobs"
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: "Created",
                  cell: (job) => (
                    <Link to={page("tags", "jobs", job.id)}>
                      <Time at={job.created_at} />
                    </Link>
                  ),
                },
                { title: "Change", cell: (job) => <JobChange job={job} /> },
                { title: "Resources", cell: ({ query }) => <JobFilters query={query} /> },
                { title: "State", cell: (job) => <JobProgress job={job} /> },
                { title: "Changed", align: "end", cell: ({ changed }) => exactCount(changed) },
                {
                  title: "Failed",
                  align: "end",
                  cell: ({ failed }) =>
                    failed === 0 ? "0" : <strong className="error-text">{exactCount(failed)}</strong>,
                },
                { title: "Actor", isMinor: true, cell: ({ actor }) => <code>{actor}</code> },
                {
                  title: "Actions",
                  isAction: true,
                  cell: (job) => <CancelJob job={job} size="small" onDone={jobs.reload} />,
                },
              ]}
            />
          )
        }
      </ResourceView>
      {jobs.hasMore && <Button onClick={jobs.loadMore}>Show more</Button>}
    </>
  );
}
