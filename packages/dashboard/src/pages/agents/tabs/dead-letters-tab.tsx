import { Button } from "../../../components/button.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useList } from "../../../http/use-list.ts";
import { useHasPermission } from "../../../session/session.ts";
import type { DeadLetter } from "../agent.ts";
import { Payload } from "../payload.tsx";

const REFRESH_MS = 5000;

export function DeadLettersTab({ path, onChange }: { readonly path: string; readonly onChange: () => void }) {
  const deadLetters = useList<DeadLetter>(path, { refreshMs: REFRESH_MS });
  const canEdit = useHasPermission("agents.edit");
  const changed = () => {
    deadLetters.reload();
    onChange();
  };
  const replay = useAction(async (ids?: readonly string[]) => {
    await request(`${path}/replay`, { method: "POST", body: ids === undefined ? {} : { ids } });
    changed();
  });
  const discard = useAction(async (id: string) => {
    await request(`${path}/${encodeURIComponent(id)}`, { method: "DELETE" });
    changed();
  });
  const error = replay.error ?? discard.error;
  return (
    <>
      {error !== null && <ErrorNotice error={error} />}
      <ResourceView of={deadLetters}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title="No dead letters">
              <p>
                Queued and scheduled work that failed on every attempt is listed here with its error. After
                fixing the cause, replay it.
              </p>
            </EmptyState>
          ) : (
            <>
              {canEdit && (
                <div>
                  <Button isBusy={replay.isBusy} onClick={() => void replay.run()}>
                    Replay all
                  </Button>
                </div>
              )}
              <Table
                label="Dead letters"
                rows={rows}
                keyOf={(letter) => letter.id}
                columns={[
                  {
                    title: "Method",
                    cell: (letter) => (
                      <>
                        <code>{letter.callback}</code> <span className="muted small">{letter.origin}</span>
                      </>
                    ),
                  },
                  { title: "Error", cell: (letter) => letter.error },
                  { title: "Payload", cell: (letter) => <Payload value={letter.payload} /> },
                  { title: "Attempts", align: "end", isMinor: true, cell: (letter) => letter.attempts },
                  { title: "Failed", cell: (letter) => <Time at={letter.failed_at} /> },
                  {
                    title: "Actions",
                    align: "end",
                    cell: (letter) =>
                      canEdit && (
                        <span className="row">
                          <Button size="small" onClick={() => void replay.run([letter.id])}>
                            Replay
                          </Button>
                          <Button size="small" onClick={() => void discard.run(letter.id)}>
                            Discard
                          </Button>
                        </span>
                      ),
                  },
                ]}
              />
            </>
          )
        }
      </ResourceView>
    </>
  );
}
