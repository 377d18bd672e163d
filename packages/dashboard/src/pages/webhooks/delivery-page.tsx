import { Badge } from "../../components/badge.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Time } from "../../components/time.tsx";
import { prettyJson } from "../../format/json.ts";
import { bytes, duration } from "../../format/number.ts";
import { read, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { ErrorText } from "../agents/error-text.tsx";
import { adviceForReason, describeReason, STATUS_TONES } from "./delivery-status.ts";
import { DeliveryTable } from "./delivery-table.tsx";
import { RejectedRequestPanel } from "./rejected-request-panel.tsx";
import { ReplayDelivery } from "./replay-delivery.tsx";
import type { Delivery, DeliveryDetail } from "./webhook.ts";

export function DeliveryPage({ id }: { readonly id: string }) {
  const { api, page } = useAccountPaths();
  const path = api("webhooks", "deliveries", id);
  const delivery = useResource(path, (signal) => read<DeliveryDetail>(path, signal));
  const { value } = delivery;
  return (
    <>
      <PageHeader
        title={value?.type ?? "Delivery"}
        crumbs={[
          { title: "Webhooks", to: page("webhooks") },
          { title: "Deliveries", to: page("webhooks", "deliveries") },
        ]}
        actions={
          value !== undefined && (
            <>
              <Badge tone={STATUS_TONES[value.status]}>{value.status}</Badge>
              {value.replayed_at !== null && (
                <Badge tone="good">
                  replayed <Time at={value.replayed_at} />
                </Badge>
              )}
            </>
          )
        }
      >
        <code className="nowrap">{id}</code>
      </PageHeader>
      <ResourceView of={delivery}>
        {(loaded) => <DeliveryView delivery={loaded} path={path} onReplayed={delivery.reload} />}
      </ResourceView>
    </>
  );
}

interface DeliveryViewProps {
  readonly delivery: DeliveryDetail;
  readonly path: string;
  readonly onReplayed: () => void;
}

function DeliveryView({ delivery, path, onReplayed }: DeliveryViewProps) {
  const { page } = useAccountPaths();
  const canReadAgents = useHasPermission("agents.read");
  const headers = Object.entries(delivery.headers);
  const { instance, agent } = delivery;
  return (
    <div className="stack">
      <Why delivery={delivery} />
      <ReplayDelivery delivery={delivery} path={path} onReplayed={onReplayed} />
      {delivery.delivery_id !== null && <Attempts delivery={delivery} id={delivery.delivery_id} />}
      <section className="panel wide-details" aria-label="Details">
        <DetailList
          items={[
            ["Received", <Time key="received" at={delivery.received_at} />],
            [
              "Source",
              <Link key="source" to={page("webhooks", "sources", delivery.source)}>
                {delivery.source}
              </Link>,
            ],
            ["Event type", delivery.type ?? "unknown"],
            ["Title", delivery.title ?? "–"],
            [
              "Instance",
              instance === null ? (
                "none"
              ) : canReadAgents ? (
                <Link key="instance" to={page("agents", agent, instance)}>
                  {instance}
                </Link>
              ) : (
                instance
              ),
            ],
            [
              "Delivery ID",
              <code key="id" className="whole-id">
                {delivery.delivery_id ?? "–"}
              </code>,
            ],
            ["Response status", delivery.http_status],
            ["Duration", duration(delivery.duration_ms)],
            ["Body size", bytes(delivery.body_bytes)],
          ]}
        />
      </section>
      {delivery.request !== null && (
        <RejectedRequestPanel request={delivery.request} source={delivery.source} />
      )}
      {delivery.status !== "rejected" && (
        <section className="panel" aria-labelledby="body-title">
          <h2 id="body-title">Body</h2>
          {delivery.body === null ? (
            <p className="muted">The body was too large to be stored.</p>
          ) : (
            <CodeBlock label="Body" code={prettyJson(delivery.body)} />
          )}
        </section>
      )}
      {headers.length > 0 && (
        <section className="panel" aria-labelledby="headers-title">
          <h2 id="headers-title">Headers</h2>
          <CodeBlock
            label="Headers"
            code={headers.map(([name, value]) => `${name}: ${value}`).join("\n")}
            canCopy={false}
          />
        </section>
      )}
    </div>
  );
}

const MAX_ATTEMPTS = 20;

/** The sender repeats a delivery that failed, with the same id: all of them together. Nothing if this is the only one. */
function Attempts({ delivery, id }: { readonly delivery: DeliveryDetail; readonly id: string }) {
  const { api } = useAccountPaths();
  const path = withQuery(api("webhooks", "deliveries"), {
    source: delivery.source,
    delivery_id: id,
    limit: MAX_ATTEMPTS,
  });
  const attempts = useResource(path, (signal) => read<Delivery[]>(path, signal));
  const rows = attempts.value ?? [];
  if (rows.length < 2) return null;
  return (
    <section className="section" aria-labelledby="attempts-title">
      <h2 id="attempts-title">Attempts of this event</h2>
      <DeliveryTable rows={rows} isOneSource current={delivery.id} />
    </section>
  );
}

/** Why the delivery was not processed, and what to do. */
function Why({ delivery: { status, reason, error } }: { readonly delivery: DeliveryDetail }) {
  if (status === "accepted") return null;
  if (status === "duplicate")
    return (
      <p className="notice notice-warn">
        The instance has already processed this delivery. It was not processed again.
      </p>
    );
  return (
    <div className="notice notice-bad" data-testid="why">
      <p>
        <strong>
          {status === "rejected" ? "Rejected" : "Failed"}: {describeReason(reason)}.
        </strong>{" "}
        {adviceForReason(reason)}
      </p>
      {error !== null && <ErrorText message={`${error.name}: ${error.message}`} stack={error.stack} />}
    </div>
  );
}
