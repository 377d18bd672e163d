import { useState } from "react";
import { Badge } from "../../../components/badge.tsx";
import { Button } from "../../../components/button.tsx";
import { ConfirmDialog } from "../../../components/confirm-dialog.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { duration } from "../../../format/number.ts";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useList } from "../../../http/use-list.ts";
import { useHasPermission } from "../../../session/session.ts";
import type { Schedule } from "../agent.ts";
import { Payload } from "../payload.tsx";

const REFRESH_MS = 5000;

export function SchedulesTab({ path, onChange }: { readonly path: string; readonly onChange: () => void }) {
  const schedules = useList<Schedule>(path, { refreshMs: REFRESH_MS });
  const canEdit = useHasPermission("agents.edit");
  const [cancelled, setCancelled] = useState<Schedule | null>(null);
  const [started, setStarted] = useState<string | null>(null);
  const pathOf = ({ id }: Schedule) => `${path}/${encodeURIComponent(id)}`;
  const changed = () => {
    schedules.reload();
    onChange();
  };
  const run = useAction(async (schedule: Schedule) => {
    setStarted(null);
    try {
      await request(`${pathOf(schedule)}/run`, { method: "POST", body: {} });
      setStarted(schedule.callback);
    } finally {
      changed();
    }
  });
  return (
    <>
      {run.error !== null && <ErrorNotice error={run.error} />}
      {started !== null && (
        <p className="notice notice-good" role="status">
          {started} is run now. The timeline shows its outcome.
        </p>
      )}
      <ResourceView of={schedules}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title="No schedules">
              <p>
                Agents schedule work with <code>this.schedule(when, method, payload)</code>: at a time, after
                a delay, or repeatedly with a cron expression.
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Schedules"
              rows={rows}
              keyOf={(schedule) => schedule.id}
              columns={[
                { title: "Method", cell: (schedule) => <code>{schedule.callback}</code> },
                { title: "Schedule", cell: recurrence },
                {
                  title: "Next run",
                  cell: (schedule) =>
                    schedule.running ? (
                      <Badge tone="accent">running</Badge>
                    ) : (
                      <span className="nowrap">
                        <Time at={schedule.due_at} isDue />
                      </span>
                    ),
                },
                { title: "Payload", isMinor: true, cell: (schedule) => <Payload value={schedule.payload} /> },
                {
                  title: "Actions",
                  align: "end",
                  isAction: true,
                  cell: (schedule) =>
                    canEdit && (
                      <span className="row nowrap-row">
                        <Button
                          size="small"
                          disabled={schedule.running || run.isBusy}
                          onClick={() => void run.run(schedule)}
                        >
                          Run now<span className="visually-hidden"> {schedule.callback}</span>
                        </Button>
                        <Button size="small" onClick={() => setCancelled(schedule)}>
                          Cancel<span className="visually-hidden"> {schedule.callback}</span>
                        </Button>
                      </span>
                    ),
                },
              ]}
            />
          )
        }
      </ResourceView>
      {cancelled !== null && (
        <ConfirmDialog
          title="Cancel this schedule?"
          verb="Cancel schedule"
          onConfirm={async () => {
            await request(pathOf(cancelled), { method: "DELETE" });
            changed();
          }}
          onClose={() => setCancelled(null)}
        >
          <p>
            <code>{cancelled.callback}</code> ({recurrence(cancelled)}) will not run any more. This cannot be
            undone here; the agent can schedule it again.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

function recurrence(schedule: Schedule): string {
  if (schedule.cron !== null) return `cron ${schedule.cron}`;
  if (schedule.interval_seconds !== null) return `every ${duration(schedule.interval_seconds * 1000)}`;
  return schedule.type === "delayed" ? "once, after a delay" : "once";
}
