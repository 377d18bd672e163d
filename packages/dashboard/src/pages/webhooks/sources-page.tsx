import type { DeliverySummary } from "@signalbox/client";
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
  const { api } = useAccountPaths();
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
            <SourceLists rows={rows} summary={summary.value} />
          )
        }
      </ResourceView>
    </>
  );
}

interface SourceListsProps {
  readonly rows: readonly Source[];
  /** Undefined while it is being read. */
  readonly summary: DeliverySummary | undefined;
}

/** Sources in use, then those that could be set up: a source has a secret or deliveries, or nobody uses it yet. */
function SourceLists({ rows, summary }: SourceListsProps) {
  const { page } = useAccountPaths();
  const active = new Set(summary?.sources.map(({ source }) => source));
  const isUsed = ({ name, secrets }: Source) => secrets > 0 || active.has(name);
  const used = rows.filter(isUsed);
  const others = rows.filter((source) => !isUsed(source));
  return (
    <div className="stack">
      {used.length === 0 ? (
        <EmptyState title="No source is set up yet">
          <p>
            Choose one below: its page shows the address to enter at the sender and the secret to set here.
          </p>
        </EmptyState>
      ) : (
        <Table
          label="Sources"
          rows={used}
          keyOf={(source) => source.name}
          columns={[
            {
              title: "Source",
              cell: (source) => <Link to={page("webhooks", "sources", source.name)}>{source.name}</Link>,
            },
            { title: "Secret", cell: (source) => <SecretBadge source={source} /> },
            {
              title: "Last 24 hours",
              cell: (source) => <DeliveryCounts summary={summary} source={source.name} />,
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
      )}
      {others.length > 0 && <Gallery sources={others} />}
    </div>
  );
}

function Gallery({ sources }: { readonly sources: readonly Source[] }) {
  const { page } = useAccountPaths();
  return (
    <section className="section" aria-labelledby="gallery-title">
      <h2 id="gallery-title">Add a source</h2>
      <ul className="gallery">
        {sources.map(({ name, scheme }) => (
          <li key={name}>
            <Link to={page("webhooks", "sources", name)} className="gallery-card">
              <span className="gallery-mark" aria-hidden="true">
                {name.slice(0, 2)}
              </span>
              <span>
                <strong>{name}</strong>
                <span className="muted small">{scheme}</span>
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function SecretBadge({ source }: { readonly source: Source }) {
  if (source.secrets === 0) return <Badge tone="warn">not set</Badge>;
  return <Badge tone="good">{source.secrets === 1 ? "set" : `${source.secrets} active`}</Badge>;
}
