import { useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ConfirmDialog } from "../../../components/confirm-dialog.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { count, plural } from "../../../format/number.ts";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useList } from "../../../http/use-list.ts";
import { useHasPermission } from "../../../session/session.ts";
import type { DeadLetter } from "../agent.ts";
import { ErrorText } from "../error-text.tsx";
import { Payload } from "../payload.tsx";

const REFRESH_MS = 2000;

interface DeadLettersTabProps {
  readonly path: string;
  readonly onChange: () => void;
}

/** Letters that were replayed, and the ids that the list had before: others are items that have failed since. */
interface Replayed {
  readonly number: number;
  readonly before: ReadonlySet<string>;
}

export function DeadLettersTab({ path, onChange }: DeadLettersTabProps) {
  const letters = useList<DeadLetter>(path, { refreshMs: REFRESH_MS });
  const canEdit = useHasPermission("agents.edit");
  const [discarded, setDiscarded] = useState<DeadLetter | "all" | null>(null);
  const [replayed, setReplayed] = useState<Replayed | null>(null);
  const changed = () => {
    letters.reload();
    onChange();
  };
  const replay = useAction(async (ids?: readonly string[]) => {
    const before = new Set((letters.value ?? []).map(({ id }) => id));
    setReplayed(null);
    try {
      const { result } = await request<{ readonly replayed: number }>(`${path}/replay`, {
        method: "POST",
        body: ids === undefined ? {} : { ids },
      });
      setReplayed({ number: result.replayed, before });
    } finally {
      changed();
    }
  });
  const discard = async (what: DeadLetter | "all") => {
    await request(what === "all" ? path : `${path}/${encodeURIComponent(what.id)}`, { method: "DELETE" });
    changed();
  };
  return (
    <>
      {replay.error !== null && <ErrorNotice error={replay.error} />}
      {replayed !== null && <ReplayReport replayed={replayed} letters={letters.value ?? []} />}
      <ResourceView of={letters}>
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
                <div className="row">
                  <Button isBusy={replay.isBusy} onClick={() => void replay.run()}>
                    Replay all
                  </Button>
                  <Button onClick={() => setDiscarded("all")}>Discard all</Button>
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
                  { title: "Error", cell: (letter) => <ErrorText message={letter.error} /> },
                  { title: "Payload", cell: (letter) => <Payload value={letter.payload} /> },
                  { title: "Attempts", align: "end", isMinor: true, cell: (letter) => letter.attempts },
                  {
                    title: "Failed",
                    cell: (letter) => (
                      <span className="nowrap">
                        <Time at={letter.failed_at} />
                      </span>
                    ),
                  },
                  {
                    title: "Actions",
                    align: "end",
                    isAction: true,
                    cell: (letter) =>
                      canEdit && (
                        <span className="row nowrap-row">
                          <Button
                            size="small"
                            disabled={replay.isBusy}
                            onClick={() => void replay.run([letter.id])}
                          >
                            Replay
                          </Button>
                          <Button size="small" onClick={() => setDiscarded(letter)}>
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
      {letters.hasMore && <Button onClick={letters.loadMore}>Show more</Button>}
      {discarded !== null && (
        <ConfirmDialog
          title={discarded === "all" ? "Discard all dead letters?" : "Discard this dead letter?"}
          verb="Discard"
          onConfirm={() => discard(discarded)}
          onClose={() => setDiscarded(null)}
        >
          <p>The payload is deleted and the work is not done. This cannot be undone.</p>
          {discarded !== "all" && <Payload value={discarded.payload} />}
        </ConfirmDialog>
      )}
    </>
  );
}

function ReplayReport({
  replayed,
  letters,
}: {
  readonly replayed: Replayed;
  readonly letters: readonly DeadLetter[];
}) {
  const again = letters.filter(({ id }) => !replayed.before.has(id)).length;
  return (
    <p
      className={`notice ${again === 0 ? "notice-good" : "notice-bad"}`}
      role="status"
      data-testid="replay-report"
    >
      <span>
        {plural(replayed.number, "dead letter")} replayed
        {again === 0 ? ", none has failed again so far." : `, ${count(again)} failed again.`}
      </span>
    </p>
  );
}
