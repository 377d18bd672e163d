import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { prettyJson } from "../../format/json.ts";
import { bytes, duration } from "../../format/number.ts";
import { read, request } from "../../http/api.ts";
import { useAction } from "../../http/use-action.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { adviceForReason, describeReason, STATUS_TONES } from "./delivery-status.ts";
import type { DeliveryDetail } from "./webhook.ts";

export function DeliveryPage({ id }: { readonly id: string }) {
  const { api, page } = useAccountPaths();
  const path = api("webhooks", "deliveries", id);
  const delivery = useResource(path, (signal) => read<DeliveryDetail>(path, signal));
  return (
    <>
      <PageHeader
        title="Delivery"
        crumbs={[
          { title: "Webhooks", to: page("webhooks") },
          { title: "Deliveries", to: page("webhooks", "deliveries") },
        ]}
        actions={
          delivery.value !== undefined && (
            <Badge tone={STATUS_TONES[delivery.value.status]}>{delivery.value.status}</Badge>
          )
        }
      >
        {id}
      </PageHeader>
      <ResourceView of={delivery}>{(value) => <DeliveryView delivery={value} path={path} />}</ResourceView>
    </>
  );
}

function DeliveryView({ delivery, path }: { readonly delivery: DeliveryDetail; readonly path: string }) {
  const { page } = useAccountPaths();
  const headers = Object.entries(delivery.headers);
  return (
    <div className="stack">
      {delivery.status !== "accepted" && (
        <p className={`notice ${delivery.status === "duplicate" ? "notice-warn" : "notice-bad"}`}>
          {delivery.status === "duplicate"
            ? "The instance has already processed this delivery. It was not processed again."
            : `${delivery.status === "rejected" ? "Rejected" : "Failed"}: ${describeReason(delivery.reason)}. ${adviceForReason(delivery.reason)}`}
        </p>
      )}
      <section className="panel" aria-label="Details">
        <DetailList
          items={[
            ["Received", new Date(delivery.received_at).toLocaleString()],
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
              delivery.instance === null ? (
                "none"
              ) : (
                <Link key="instance" to={page("agents", delivery.agent, delivery.instance)}>
                  {delivery.instance}
                </Link>
              ),
            ],
            ["Delivery ID", delivery.delivery_id ?? "–"],
            ["Response status", delivery.http_status],
            ["Reason", describeReason(delivery.reason)],
            ["Duration", duration(delivery.duration_ms)],
            ["Body size", bytes(delivery.body_bytes)],
          ]}
        />
      </section>
      <Replay delivery={delivery} path={path} />
      <section className="panel" aria-labelledby="body-title">
        <h2 id="body-title">Body</h2>
        {delivery.body === null ? (
          <p className="muted">
            {delivery.status === "rejected"
              ? "The bodies of rejected deliveries are not stored."
              : "The body was too large to be stored."}
          </p>
        ) : (
          <CodeBlock label="Body" code={prettyJson(delivery.body)} />
        )}
      </section>
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

function Replay({ delivery, path }: { readonly delivery: DeliveryDetail; readonly path: string }) {
  const canEdit = useHasPermission("webhooks.edit");
  const [outcome, setOutcome] = useState<string | null>(null);
  const replay = useAction(async () => {
    const { result } = await request<{ status: string }>(`${path}/replay`, { method: "POST" });
    setOutcome(result.status);
  });
  if (!canEdit || delivery.status === "rejected" || delivery.body === null || delivery.instance === null)
    return null;
  return (
    <section className="row" aria-label="Replay">
      <Button isBusy={replay.isBusy} onClick={() => void replay.run()}>
        Replay
      </Button>
      {outcome !== null && (
        <span role="status" className="muted">
          Replayed: {describeReason(outcome)}.
        </span>
      )}
      {replay.error !== null && <ErrorNotice error={replay.error} />}
    </section>
  );
}
