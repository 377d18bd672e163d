import { Badge } from "../../components/badge.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { read } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccount, useAccountPaths } from "../../session/session.ts";
import { DeliveryCounts } from "./delivery-counts.tsx";
import type { Source } from "./webhook.ts";
import { WebhooksTabs } from "./webhooks-tabs.tsx";

const DAY_MS = 24 * 3_600_000;
const REFRESH_MS = 10_000;

export function SourcesPage() {
  const { api, page } = useAccountPaths();
  const path = api("webhooks", "sources");
  const sources = useResource(path, (signal) => read<Source[]>(path, signal));
  const account = useAccount();
  // The table does not wait for the counts; its cells show a dash until then.
  const summary = useResource(
    `summary ${account.id}`,
    (signal) => account.webhooks.summary({ since: new Date(Date.now() - DAY_MS).toISOString() }, { signal }),
    { refreshMs: REFRESH_MS },
  );
  return (
    <>
      <PageHeader title="Webhooks">
        A source is a sender of webhooks. Its deliveries are verified and routed to the agent instance of
        their entity.
      </PageHeader>
      <WebhooksTabs current="sources" />
      <ResourceView of={sources}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title="No sources in this account">
              <p>
                Sources belong to the account <code>default</code> unless the configuration assigns them to
                another account under <code>webhooks.sources</code>.
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Sources"
              rows={[...rows].sort((a, b) => Number(b.secrets > 0) - Number(a.secrets > 0))}
              keyOf={(source) => source.name}
              columns={[
                {
                  title: "Source",
                  cell: (source) => <Link to={page("webhooks", "sources", source.name)}>{source.name}</Link>,
                },
                { title: "Secret", cell: (source) => <SecretBadge source={source} /> },
                {
                  title: "Last 24 hours",
                  cell: (source) => <DeliveryCounts summary={summary.value} source={source.name} />,
                },
                { title: "Agent", cell: (source) => <code className="nowrap">{source.agent}</code> },
                {
                  title: "Signature",
                  isMinor: true,
                  cell: (source) => <span className="small">{source.scheme}</span>,
                },
                {
                  title: "Path",
                  isMinor: true,
                  cell: (source) => <code className="nowrap">{source.path}</code>,
                },
              ]}
            />
          )
        }
      </ResourceView>
    </>
  );
}

export function SecretBadge({ source }: { readonly source: Source }) {
  if (source.secrets === 0) return <Badge tone="warn">not set</Badge>;
  return <Badge tone="good">{source.secrets === 1 ? "set" : `${source.secrets} active`}</Badge>;
}
