import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import { DeliveryTable } from "./delivery-table.tsx";
import type { Delivery } from "./webhook.ts";
import { WebhooksTabs } from "./webhooks-tabs.tsx";

const LIVE_MS = 2000;

export function DeliveriesPage() {
  const { api } = useAccountPaths();
  const [source, setSource] = useQueryValue("source");
  const [status, setStatus] = useQueryValue("status");
  const [type, setType] = useQueryValue("type");
  const deliveries = useList<Delivery>(withQuery(api("webhooks", "deliveries"), { source, status, type }), {
    refreshMs: LIVE_MS,
  });
  const isFiltered = source !== "" || status !== "" || type !== "";
  return (
    <>
      <PageHeader title="Webhooks">
        What arrived, what became of it, and why. Refused deliveries are kept in memory only.
      </PageHeader>
      <WebhooksTabs current="deliveries" />
      <div className="filters">
        <Field label="Source">
          <input
            type="search"
            value={source}
            placeholder="github"
            onChange={({ target }) => setSource(target.value)}
          />
        </Field>
        <Field label="Outcome">
          <select value={status} onChange={({ target }) => setStatus(target.value)}>
            <option value="">Any</option>
            <option value="accepted">Accepted</option>
            <option value="duplicate">Duplicate</option>
            <option value="rejected">Rejected</option>
            <option value="failed">Failed</option>
          </select>
        </Field>
        <Field label="Event type">
          <input
            type="search"
            value={type}
            placeholder="push"
            onChange={({ target }) => setType(target.value)}
          />
        </Field>
      </div>
      <ResourceView of={deliveries}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={isFiltered ? "No delivery matches" : "No deliveries yet"}>
              <p>
                {isFiltered
                  ? "Source and event type must match as a whole."
                  : "Open a source, follow its setup, and send a test event: it appears here at once."}
              </p>
            </EmptyState>
          ) : (
            <DeliveryTable rows={rows} />
          )
        }
      </ResourceView>
      {deliveries.hasMore && <Button onClick={deliveries.loadMore}>Show more</Button>}
    </>
  );
}
