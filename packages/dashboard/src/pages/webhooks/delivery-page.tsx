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
import { ask, read } from "../../http/api.ts";
import { useAction } from "../../http/use-action.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { describeReason, STATUS_TONES } from "./delivery-status.ts";
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
            ? "The instance had this delivery before; nothing ran."
            : `${delivery.status === "rejected" ? "Refused" : "Failed"}: ${describeReason(delivery.reason)}.`}
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
            ["Event", delivery.type ?? "not read"],
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
            ["Delivery id", delivery.delivery_id ?? "–"],
            ["Answer", `${delivery.http_status}, ${describeReason(delivery.reason)}`],
            ["Took", duration(delivery.duration_ms)],
            ["Size", bytes(delivery.body_bytes)],
          ]}
        />
      </section>
      <Replay delivery={delivery} path={path} />
      <section className="panel" aria-labelledby="body-title">
        <h2 id="body-title">Body</h2>
        {delivery.body === null ? (
          <p className="muted">Not kept: it was refused unread, or is too large to keep.</p>
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
    const { result } = await ask<{ status: string }>(`${path}/replay`, { method: "POST" });
    setOutcome(result.status);
  });
  if (!canEdit || delivery.status === "rejected" || delivery.body === null || delivery.instance === null)
    return null;
  return (
    <section className="row" aria-label="Replay">
      <Button isBusy={replay.isBusy} onClick={() => void replay.run()}>
        Hand to the agent again
      </Button>
      {outcome !== null && (
        <span role="status" className="muted">
          {outcome === "processed" ? "Handled once more." : `Outcome: ${outcome}.`}
        </span>
      )}
      {replay.error !== null && <ErrorNotice error={replay.error} />}
    </section>
  );
}
