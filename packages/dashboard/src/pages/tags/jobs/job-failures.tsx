import type { TagJob, TagJobFailure } from "@signalbox/client";
import { Button } from "../../../components/button.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { useList } from "../../../http/use-list.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import { resourceKey, type TaggedResource } from "../tagged-resource.ts";
import { RUNNING_REFRESH_MS } from "./job-words.ts";

type Failure = TagJobFailure & Pick<TaggedResource, "zone_id">;

/** The resources that a job could not change, with the reason of each. */
export function JobFailures({ job }: { readonly job: TagJob }) {
  const { api, page } = useAccountPaths();
  const failures = useList<Failure>(
    api("tags", "jobs", job.id, "failures"),
    job.state === "running" ? { refreshMs: RUNNING_REFRESH_MS } : {},
  );
  return (
    <section className="section" aria-labelledby="failures-title">
      <h2 id="failures-title">Resources that could not be changed</h2>
      <ResourceView of={failures}>
        {(rows) => (
          <Table
            label="Failures"
            rows={rows}
            keyOf={resourceKey}
            columns={[
              {
                title: "Resource",
                cell: ({ type, id, zone_id: zone }) => (
                  <>
                    {zone === undefined ? <Link to={page("tags", "resources", type, id)}>{id}</Link> : id}{" "}
                    <span className="muted small">
                      {type}
                      {zone !== undefined && ` of zone ${zone}`}
                    </span>
                  </>
                ),
              },
              { title: "Reason", cell: ({ errors }) => errors[0]?.message ?? "rejected" },
            ]}
          />
        )}
      </ResourceView>
      {failures.hasMore && (
        <div>
          <Button onClick={failures.loadMore}>Show more</Button>
        </div>
      )}
    </section>
  );
}
