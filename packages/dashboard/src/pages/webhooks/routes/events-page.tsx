import type { RoutedEvent } from "@signalbox/client";
import { Badge } from "../../../components/badge.tsx";
import { Button } from "../../../components/button.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { SelectField } from "../../../components/select-field.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { withQuery } from "../../../http/api.ts";
import { useList } from "../../../http/use-list.ts";
import { Link } from "../../../routing/link.tsx";
import { useQueryValue } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { WebhooksTabs } from "../webhooks-tabs.tsx";
import { EVENT_STATES, EVENT_TONES } from "./route-words.ts";

const REFRESH_MS = 3000;

/** Events of routes: a delivery for each route of its source. */
export function EventsPage() {
  const { api, page } = useAccountPaths();
  const [source] = useQueryValue("source");
  const [route] = useQueryValue("route");
  const [issue] = useQueryValue("issue");
  const [state, setState] = useQueryValue("state");
  const path = withQuery(api("webhooks", "events"), {
    source: source || undefined,
    route: route || undefined,
    issue: issue || undefined,
    state: state || undefined,
    limit: 50,
  });
  const events = useList<RoutedEvent>(path, { refreshMs: REFRESH_MS });
  const scope = [
    source && `of ${source}`,
    route && `by the route ${route}`,
    issue && `of the issue ${issue}`,
  ];
  return (
    <>
      <PageHeader title="Events" crumbs={[{ title: "Webhooks", to: page("webhooks") }]}>
        {scope.filter((part) => part !== "").join(" ") || "What the routes of sources deliver."}
      </PageHeader>
      <WebhooksTabs current="events" />
      <div className="replay-fields">
        <SelectField
          label="State"
          value={state}
          options={[["", "All states"], ...EVENT_STATES.map((one) => [one, one] as const)]}
          onChange={setState}
        />
      </div>
      <ResourceView of={events}>
        {(rows) =>
          rows.length === 0 && events.hasMore ? (
            // The search ends after some seconds, and goes on at its cursor.
            <>
              <p className="muted">None among the newest events.</p>
              <Button onClick={events.loadMore}>Look further</Button>
            </>
          ) : rows.length === 0 ? (
            <p className="muted">No events. Sources with routes have one for each delivery and route.</p>
          ) : (
            <>
              <Table
                label="Events"
                rows={rows}
                keyOf={({ id }) => id}
                columns={[
                  { title: "Received", cell: ({ received_at: at }) => <Time at={at} /> },
                  {
                    title: "Type",
                    cell: ({ id, type }) => <Link to={page("webhooks", "events", id)}>{type}</Link>,
                  },
                  { title: "Source", cell: (row) => row.source },
                  { title: "Route", cell: (row) => row.route },
                  { title: "State", cell: (row) => <Badge tone={EVENT_TONES[row.state]}>{row.state}</Badge> },
                  { title: "Attempts", align: "end", cell: ({ attempts }) => attempts },
                  {
                    title: "Next",
                    isMinor: true,
                    cell: ({ next_attempt_at: at }) => <Time at={at} fallback="" isDue />,
                  },
                  { title: "Reason", isMinor: true, cell: ({ reason }) => reason ?? "" },
                ]}
              />
              {events.hasMore && <Button onClick={events.loadMore}>Load more</Button>}
            </>
          )
        }
      </ResourceView>
    </>
  );
}
