import { Badge } from "../../../components/badge.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { useList } from "../../../http/use-list.ts";
import type { LiveConnection } from "../agent.ts";

const REFRESH_MS = 2000;

export function ConnectionsTab({ path }: { readonly path: string }) {
  const connections = useList<LiveConnection>(path, { refreshMs: REFRESH_MS });
  return (
    <ResourceView of={connections}>
      {(rows) =>
        rows.length === 0 ? (
          <EmptyState title="No connections">
            <p>
              WebSocket clients of this instance are listed here. The dashboard reads through the management
              interface and is not one of them.
            </p>
          </EmptyState>
        ) : (
          <Table
            label="Connections"
            rows={rows}
            keyOf={(connection) => connection.id}
            columns={[
              { title: "Connection", cell: (connection) => <code className="nowrap">{connection.id}</code> },
              {
                title: "Access",
                cell: ({ is_readonly }) =>
                  is_readonly ? <Badge>read-only</Badge> : <Badge tone="accent">read and write</Badge>,
              },
              {
                title: "Tags",
                isMinor: true,
                cell: ({ tags }) => (tags.length === 0 ? "–" : tags.join(", ")),
              },
              { title: "URL", isMinor: true, cell: (connection) => <code>{connection.uri}</code> },
            ]}
          />
        )
      }
    </ResourceView>
  );
}
