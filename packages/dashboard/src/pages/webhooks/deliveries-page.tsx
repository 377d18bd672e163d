import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { TimeRangePicker } from "../../components/time-range/time-range-picker.tsx";
import type { TimeRange } from "../../components/time-range/time-range.ts";
import { useTimeRange } from "../../components/time-range/use-time-range.ts";
import { count } from "../../format/number.ts";
import { read, withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { useResource } from "../../http/use-resource.ts";
import { useQueryValue } from "../../routing/location.ts";
import { useAccount, useAccountPaths, useHasPermission } from "../../session/session.ts";
import { DeliveryChart } from "./delivery-chart.tsx";
import { DeliveryTable } from "./delivery-table.tsx";
import { ReplayFailedDialog } from "./replay-failed-dialog.tsx";
import type { Delivery, Source } from "./webhook.ts";
import { WebhooksTabs } from "./webhooks-tabs.tsx";

const REFRESH_MS = 2000;
const SUMMARY_REFRESH_MS = 10_000;
/** The filter for failed deliveries that are neither replayed nor accepted later: a status of this page, not of the service. */
const FAILING = "failing";

const REASONS: readonly (readonly [reason: string, title: string])[] = [
  ["signature_mismatch", "Signature does not match"],
  ["signature_missing", "Signature missing"],
  ["no_secret", "No secret set"],
  ["timestamp_outside_window", "Timestamp outside the window"],
  ["missing_entity", "No entity"],
  ["invalid_payload", "Invalid payload"],
  ["handler_failed", "Handler failed"],
  ["overloaded", "Overloaded"],
];

export function DeliveriesPage() {
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("webhooks.edit");
  const [source, setSource] = useQueryValue("source");
  const [status, setStatus] = useQueryValue("status");
  const [reason, setReason] = useQueryValue("reason");
  const [search, setSearch] = useQueryValue("search");
  const timeRange = useTimeRange();
  const { range } = timeRange;
  const [isReplaying, setReplaying] = useState(false);
  const sourcesPath = api("webhooks", "sources");
  const sources = useResource(sourcesPath, (signal) => read<Source[]>(sourcesPath, signal));
  const filter = { source, reason, search: search.trim() };
  const deliveries = useList<Delivery>(
    withQuery(api("webhooks", "deliveries"), {
      ...filter,
      since: new Date(range.from).toISOString(),
      until: new Date(range.to).toISOString(),
      ...(status === FAILING ? { unresolved: "true" } : { status }),
    }),
    { refreshMs: REFRESH_MS },
  );
  const isFiltered = [source, status, reason, search].some((value) => value !== "");
  const given = (value: string) => (value === "" ? undefined : value);
  return (
    <>
      <PageHeader
        title="Webhooks"
        actions={canEdit && <Button onClick={() => setReplaying(true)}>Replay failed</Button>}
      >
        Webhook deliveries with their status, and why a delivery failed or was rejected.
      </PageHeader>
      <WebhooksTabs current="deliveries" />
      <div className="filters">
        <TimeRangePicker state={timeRange} />
        <Field label="Source">
          <select value={source} onChange={({ target }) => setSource(target.value)}>
            <option value="">Any</option>
            {namesOf(sources.value, source).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </Field>
        <Field label="Status">
          <select value={status} onChange={({ target }) => setStatus(target.value)}>
            <option value="">Any</option>
            <option value="accepted">Accepted</option>
            <option value="duplicate">Duplicate</option>
            <option value="rejected">Rejected</option>
            <option value="failed">Failed</option>
            <option value={FAILING}>Failed, not replayed</option>
          </select>
        </Field>
        <Field label="Reason">
          <select value={reason} onChange={({ target }) => setReason(target.value)}>
            <option value="">Any</option>
            {REASONS.map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Search">
          <input
            type="search"
            value={search}
            placeholder="Instance, type, body"
            onChange={({ target }) => setSearch(target.value)}
          />
        </Field>
      </div>
      <h2 className="visually-hidden">Deliveries, {range.title}</h2>
      <DeliveryChart range={range} filter={filter} onSelect={timeRange.setBetween} />
      <Totals range={range} />
      <ResourceView of={deliveries}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={isFiltered ? "No matching deliveries" : `No deliveries, ${range.title}`}>
              <p>
                {isFiltered
                  ? "Change or clear the filters, or choose a longer time."
                  : "Choose a longer time, or open a source, complete its setup and send a test event."}
              </p>
            </EmptyState>
          ) : (
            <DeliveryTable rows={rows} />
          )
        }
      </ResourceView>
      {deliveries.hasMore && <Button onClick={deliveries.loadMore}>Show more</Button>}
      {isReplaying && (
        <ReplayFailedDialog
          filter={{ source: given(source) }}
          scope={source === "" ? "of all sources" : `from ${source}`}
          onDone={deliveries.reload}
          onClose={() => setReplaying(false)}
        />
      )}
    </>
  );
}

/** The deliveries of the time range in words, with those that the list does not have. */
function Totals({ range }: { readonly range: TimeRange }) {
  const account = useAccount();
  const times = { since: new Date(range.from).toISOString(), until: new Date(range.to).toISOString() };
  const summary = useResource(
    `summary ${account.id} ${times.since} ${times.until}`,
    (signal) => account.webhooks.summary(times, { signal }),
    { refreshMs: SUMMARY_REFRESH_MS, identity: `summary ${account.id} ${range.name}` },
  );
  const totals = summary.value?.totals;
  if (totals === undefined || (totals.failing === 0 && totals.unlisted_rejected === 0)) return null;
  return (
    <p className="badges" role="status">
      {totals.failing > 0 && <Badge tone="bad">{count(totals.failing)} failed and not replayed</Badge>}
      {totals.unlisted_rejected > 0 && (
        <Badge tone="warn">{count(totals.unlisted_rejected)} more rejected, not listed</Badge>
      )}
    </p>
  );
}

/** The sources, and the selected one even if it does not exist any more. */
function namesOf(sources: readonly Source[] | undefined, selected: string): string[] {
  const names = (sources ?? []).map(({ name }) => name);
  return selected === "" || names.includes(selected) ? names : [selected, ...names];
}
