/** The recent events of the instance, and new ones as they occur. */
import { useState } from "react";
import { Badge, type Tone } from "../../../components/badge.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { bytes, duration } from "../../../format/number.ts";
import { read } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import type { Activity } from "../agent.ts";
import { ErrorText } from "../error-text.tsx";
import { useActivity } from "../use-activity.ts";
import { WatchBadge } from "../watch-badge.tsx";

const TITLES: Readonly<Record<string, readonly [Tone, string]>> = {
  start: ["accent", "started"],
  hibernate: ["neutral", "hibernated"],
  destroy: ["bad", "destroyed"],
  turn: ["neutral", "turn"],
  "turn:error": ["bad", "turn failed"],
  state: ["good", "state changed"],
  connect: ["neutral", "client connected"],
  disconnect: ["neutral", "client disconnected"],
  buried: ["bad", "dead letter added"],
};
const MAX_SHOWN = 200;

export function EventsTab({ path }: { readonly path: string }) {
  const recent = useResource(path, (signal) => read<Activity[]>(path, signal));
  const [received, setReceived] = useState<readonly Activity[]>([]);
  const status = useActivity(path, (event) => {
    if (event === null) recent.reload();
    else setReceived((before) => [event, ...before].slice(0, MAX_SHOWN));
  });
  return (
    <section className="section" aria-labelledby="events-title">
      <div className="row spread">
        <h2 id="events-title">Events</h2>
        <WatchBadge status={status} />
      </div>
      <ResourceView of={recent}>
        {(recentEvents) => {
          const all = newestFirst(received, recentEvents);
          return all.length === 0 ? (
            <EmptyState title="No events since the instance started">
              <p>
                Turns, state changes and connections appear here as they occur. An instance keeps its last 20
                events while it is active.
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Events"
              rows={all}
              keyOf={keyOf}
              columns={[
                {
                  title: "Time",
                  cell: (event) => (
                    <span className="nowrap">
                      <Time at={event.timestamp} />
                    </span>
                  ),
                },
                {
                  title: "Event",
                  cell: ({ type }) => {
                    const [tone, title] = TITLES[type] ?? (["neutral", type] as const);
                    return <Badge tone={tone}>{title}</Badge>;
                  },
                },
                { title: "Details", cell: (event) => <Details detail={event.detail} /> },
                {
                  title: "Duration",
                  align: "end",
                  cell: ({ detail }) => (typeof detail["ms"] === "number" ? duration(detail["ms"]) : "–"),
                },
              ]}
            />
          );
        }}
      </ResourceView>
    </section>
  );
}

/** The received events and those of the list that were not received. After a reconnect, the list has the events missed meanwhile. */
function newestFirst(received: readonly Activity[], listed: readonly Activity[]): Activity[] {
  const keys = new Set(received.map(keyOf));
  return [...received, ...listed.filter((event) => !keys.has(keyOf(event)))]
    .toSorted((a, b) => b.timestamp.localeCompare(a.timestamp))
    .slice(0, MAX_SHOWN);
}

/** Members of the detail that have a place of their own. */
const OWN_PLACE = new Set([
  "ms",
  "error",
  "stack",
  "bytes",
  "kind",
  "label",
  "name",
  "error_name",
  "failure_id",
]);

function Details({ detail }: { readonly detail: Activity["detail"] }) {
  const { kind, label, error, stack } = detail;
  const rest = Object.entries(detail).filter(
    ([name, value]) => !OWN_PLACE.has(name) && value !== "" && value !== null,
  );
  return (
    <>
      {typeof kind === "string" && (
        <span className="nowrap">
          {kind} {typeof label === "string" && label !== "" && label !== kind && <code>{label} </code>}
        </span>
      )}
      {typeof detail["bytes"] === "number" && <span className="nowrap">{bytes(detail["bytes"])} </span>}
      {rest.length > 0 && (
        <span className="muted">{rest.map(([name, value]) => `${name} ${String(value)}`).join(", ")}</span>
      )}
      {typeof error === "string" && (
        <ErrorText message={error} stack={typeof stack === "string" ? stack : null} />
      )}
    </>
  );
}

function keyOf({ type, timestamp, detail }: Activity): string {
  return JSON.stringify([type, timestamp, detail]);
}
