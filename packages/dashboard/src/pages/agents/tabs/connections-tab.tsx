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
          <EmptyState title="Nobody is connected">
            <p>
              Clients that watch this instance over a WebSocket are listed here. The dashboard itself connects
              only while it shows the state or the console.
            </p>
          </EmptyState>
        ) : (
          <Table
            label="Connections"
            rows={rows}
            keyOf={(connection) => connection.id}
            columns={[
              { title: "Connection", cell: (connection) => <code>{connection.id}</code> },
              {
                title: "May",
                cell: ({ is_readonly }) =>
                  is_readonly ? <Badge>watch</Badge> : <Badge tone="accent">watch and change</Badge>,
              },
              {
                title: "Tags",
                isMinor: true,
                cell: ({ tags }) => (tags.length === 0 ? "–" : tags.join(", ")),
              },
              { title: "Address", isMinor: true, cell: (connection) => <code>{connection.uri}</code> },
            ]}
          />
        )
      }
    </ResourceView>
  );
}
