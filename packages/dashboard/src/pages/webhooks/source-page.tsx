import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { read, withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccountPaths } from "../../session/session.ts";
import { DeliveryTable } from "./delivery-table.tsx";
import { SecretBadge } from "./sources-page.tsx";
import { SourceRoutes } from "./routes/source-routes.tsx";
import { SourceSetup } from "./source-setup.tsx";
import { CannotSend, TestEvent } from "./test-event.tsx";
import type { Delivery, Source } from "./webhook.ts";

const REFRESH_MS = 2000;
const MAX_SHOWN = 20;

export function SourcePage({ name }: { readonly name: string }) {
  const { api, page } = useAccountPaths();
  const path = api("webhooks", "sources", name);
  const source = useResource(path, (signal) => read<Source>(path, signal));
  const deliveries = useList<Delivery>(
    withQuery(api("webhooks", "deliveries"), { source: name, limit: MAX_SHOWN }),
    { refreshMs: REFRESH_MS },
  );
  return (
    <>
      <PageHeader
        title={name}
        crumbs={[{ title: "Webhooks", to: page("webhooks") }]}
        actions={source.value !== undefined && <TestEvent source={source.value} onSent={deliveries.reload} />}
      >
        {source.value !== undefined && (
          <>
            Secret: <SecretBadge source={source.value} />
          </>
        )}
      </PageHeader>
      <ResourceView of={source}>
        {(value) => (
          <>
            <CannotSend source={value} />
            {/* Once it works, the setup is in the way. */}
            <SourceSetup source={value} isOpen={value.secrets === 0 || deliveries.value?.length === 0} />
          </>
        )}
      </ResourceView>
      {source.value !== undefined && <SourceRoutes source={name} agent={source.value.agent} />}
      <section className="section" aria-labelledby="recent-title">
        <h2 id="recent-title">Recent deliveries</h2>
        <ResourceView of={deliveries}>
          {(rows) =>
            rows.length === 0 ? (
              <p className="muted">
                No deliveries yet. Accepted and rejected deliveries appear here as they arrive.
              </p>
            ) : (
              <DeliveryTable rows={rows.slice(0, MAX_SHOWN)} isOneSource />
            )
          }
        </ResourceView>
      </section>
    </>
  );
}
