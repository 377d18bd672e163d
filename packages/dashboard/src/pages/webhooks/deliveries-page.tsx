import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { StatTile, StatTiles } from "../../components/stat-tile.tsx";
import { count } from "../../format/number.ts";
import { read, withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { useResource } from "../../http/use-resource.ts";
import { useQueryValue } from "../../routing/location.ts";
import { useAccount, useAccountPaths, useHasPermission } from "../../session/session.ts";
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
  const [type, setType] = useQueryValue("type");
  const [isReplaying, setReplaying] = useState(false);
  const sourcesPath = api("webhooks", "sources");
  const sources = useResource(sourcesPath, (signal) => read<Source[]>(sourcesPath, signal));
  const deliveries = useList<Delivery>(
    withQuery(api("webhooks", "deliveries"), {
      source,
      type,
      reason,
      ...(status === FAILING ? { unresolved: "true" } : { status }),
    }),
    { refreshMs: REFRESH_MS },
  );
  const isFiltered = [source, status, reason, type].some((value) => value !== "");
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
      <DayTotals />
      <div className="filters">
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
                  ? "Change or clear the filters. The event type must match exactly."
                  : "Open a source, complete its setup and send a test event."}
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
          filter={{ source: given(source), type: given(type) }}
          scope={scopeOf(source, type)}
          onDone={deliveries.reload}
          onClose={() => setReplaying(false)}
        />
      )}
    </>
  );
}

const DAY_MS = 24 * 3_600_000;

function DayTotals() {
  const account = useAccount();
  const summary = useResource(
    `summary ${account.id}`,
    (signal) => account.webhooks.summary({ since: new Date(Date.now() - DAY_MS).toISOString() }, { signal }),
    { refreshMs: SUMMARY_REFRESH_MS },
  );
  const totals = summary.value?.totals;
  const show = (value: number | undefined) => (value === undefined ? "–" : count(value));
  return (
    <StatTiles label="Last 24 hours">
      <StatTile label="Accepted, 24 h" value={show(totals?.accepted)} />
      <StatTile
        label="Failed"
        value={show(totals?.failed)}
        note={
          totals !== undefined && totals.failing > 0 ? `${count(totals.failing)} not replayed` : undefined
        }
        {...((totals?.failing ?? 0) > 0 ? { tone: "bad" as const } : {})}
      />
      <StatTile
        label="Rejected"
        value={show(totals === undefined ? undefined : totals.rejected + totals.unlisted_rejected)}
        note={
          totals !== undefined && totals.unlisted_rejected > 0
            ? `${count(totals.unlisted_rejected)} not listed`
            : undefined
        }
      />
      <StatTile label="Duplicates" value={show(totals?.duplicate)} />
    </StatTiles>
  );
}

/** The sources, and the selected one even if it does not exist any more. */
function namesOf(sources: readonly Source[] | undefined, selected: string): string[] {
  const names = (sources ?? []).map(({ name }) => name);
  return selected === "" || names.includes(selected) ? names : [selected, ...names];
}

function scopeOf(source: string, type: string): string {
  const parts = [source !== "" && `from ${source}`, type !== "" && `of type ${type}`].filter(Boolean);
  return parts.length === 0 ? "of all sources" : parts.join(" ");
}
