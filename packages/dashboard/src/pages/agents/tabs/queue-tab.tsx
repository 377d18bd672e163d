import { EmptyState } from "../../../components/empty-state.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { useList } from "../../../http/use-list.ts";
import type { QueueItem } from "../agent.ts";
import { Payload } from "../payload.tsx";

const REFRESH_MS = 2000;

export function QueueTab({ path }: { readonly path: string }) {
  const items = useList<QueueItem>(path, { refreshMs: REFRESH_MS });
  return (
    <ResourceView of={items}>
      {(rows) =>
        rows.length === 0 ? (
          <EmptyState title="The queue is empty">
            <p>
              Items that the agent adds with <code>this.queue(method, payload)</code> wait here and are
              processed in order. By default, an item that fails three times becomes a dead letter.
            </p>
          </EmptyState>
        ) : (
          <Table
            label="Queue"
            rows={rows}
            keyOf={(item) => item.id}
            columns={[
              { title: "Method", cell: (item) => <code>{item.callback}</code> },
              { title: "Payload", cell: (item) => <Payload value={item.payload} /> },
              { title: "Attempts", align: "end", cell: (item) => item.attempts },
              { title: "Next attempt", cell: (item) => <Time at={item.next_attempt_at} /> },
              { title: "Last error", isMinor: true, cell: (item) => item.last_error ?? "–" },
              { title: "Queued", isMinor: true, cell: (item) => <Time at={item.created_at} /> },
            ]}
          />
        )
      }
    </ResourceView>
  );
}
