import { EmptyState } from "../../../components/empty-state.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { useList } from "../../../http/use-list.ts";
import type { Schedule } from "../agent.ts";
import { Payload } from "../payload.tsx";

const REFRESH_MS = 5000;

export function SchedulesTab({ path }: { readonly path: string }) {
  const schedules = useList<Schedule>(path, { refreshMs: REFRESH_MS });
  return (
    <ResourceView of={schedules}>
      {(rows) =>
        rows.length === 0 ? (
          <EmptyState title="No schedules">
            <p>
              Agents schedule work with <code>this.schedule(when, method, payload)</code>: at a time, after a
              delay, or repeatedly with a cron expression.
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
              { title: "Next run", cell: (schedule) => <Time at={schedule.due_at} /> },
              { title: "Payload", isMinor: true, cell: (schedule) => <Payload value={schedule.payload} /> },
            ]}
          />
        )
      }
    </ResourceView>
  );
}

function recurrence(schedule: Schedule): string {
  if (schedule.cron !== null) return `cron ${schedule.cron}`;
  if (schedule.interval_seconds !== null) return `every ${schedule.interval_seconds} s`;
  return schedule.type === "delayed" ? "once, after a delay" : "once";
}
