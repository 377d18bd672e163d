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

const REFRESH_MS = 2000;

export function DeliveriesPage() {
  const { api } = useAccountPaths();
  const [source, setSource] = useQueryValue("source");
  const [status, setStatus] = useQueryValue("status");
  const [type, setType] = useQueryValue("type");
  const deliveries = useList<Delivery>(withQuery(api("webhooks", "deliveries"), { source, status, type }), {
    refreshMs: REFRESH_MS,
  });
  const isFiltered = source !== "" || status !== "" || type !== "";
  return (
    <>
      <PageHeader title="Webhooks">
        Webhook deliveries with their status. Rejected deliveries are kept in memory only.
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
        <Field label="Status">
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
            <EmptyState title={isFiltered ? "No matching deliveries" : "No deliveries yet"}>
              <p>
                {isFiltered
                  ? "Change or clear the filters. Source and event type must match exactly."
                  : "Open a source, complete its setup and send a test event."}
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
