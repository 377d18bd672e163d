import { useState } from "react";
import { Badge } from "../../../components/badge.tsx";
import { Button } from "../../../components/button.tsx";
import { ConfirmDialog } from "../../../components/confirm-dialog.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useList } from "../../../http/use-list.ts";
import { useHasPermission } from "../../../session/session.ts";
import type { QueueItem } from "../agent.ts";
import { ErrorText } from "../error-text.tsx";
import { Payload } from "../payload.tsx";

const REFRESH_MS = 2000;

export function QueueTab({ path, onChange }: { readonly path: string; readonly onChange: () => void }) {
  const items = useList<QueueItem>(path, { refreshMs: REFRESH_MS });
  const canEdit = useHasPermission("agents.edit");
  const [removed, setRemoved] = useState<QueueItem | null>(null);
  const pathOf = ({ id }: QueueItem) => `${path}/${encodeURIComponent(id)}`;
  const changed = () => {
    items.reload();
    onChange();
  };
  const run = useAction(async (item: QueueItem) => {
    try {
      await request(`${pathOf(item)}/run`, { method: "POST", body: {} });
    } finally {
      changed();
    }
  });
  return (
    <>
      {run.error !== null && <ErrorNotice error={run.error} />}
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
                {
                  title: "Next attempt",
                  cell: (item) =>
                    item.running ? (
                      <Badge tone="accent">running</Badge>
                    ) : (
                      <span className="nowrap">
                        <Time at={item.next_attempt_at} isDue />
                      </span>
                    ),
                },
                {
                  title: "Last error",
                  cell: (item) => (item.last_error === null ? "–" : <ErrorText message={item.last_error} />),
                },
                {
                  title: "Queued",
                  isMinor: true,
                  cell: (item) => (
                    <span className="nowrap">
                      <Time at={item.created_at} />
                    </span>
                  ),
                },
                {
                  title: "Actions",
                  align: "end",
                  isAction: true,
                  cell: (item) =>
                    canEdit && (
                      <span className="row nowrap-row">
                        <Button
                          size="small"
                          disabled={item.running || run.isBusy}
                          onClick={() => void run.run(item)}
                        >
                          Run now<span className="visually-hidden"> {item.callback}</span>
                        </Button>
                        <Button size="small" disabled={item.running} onClick={() => setRemoved(item)}>
                          Remove<span className="visually-hidden"> {item.callback}</span>
                        </Button>
                      </span>
                    ),
                },
              ]}
            />
          )
        }
      </ResourceView>
      {items.hasMore && <Button onClick={items.loadMore}>Show more</Button>}
      {removed !== null && (
        <ConfirmDialog
          title="Remove this item?"
          verb="Remove"
          onConfirm={async () => {
            await request(pathOf(removed), { method: "DELETE" });
            changed();
          }}
          onClose={() => setRemoved(null)}
        >
          <p>
            <code>{removed.callback}</code> will not be called with this payload. The item is not kept as a
            dead letter.
          </p>
          <Payload value={removed.payload} />
        </ConfirmDialog>
      )}
    </>
  );
}
