/** The recent events of the instance, and new ones as they occur. */
import { useEffect, useState } from "react";
import { Badge, type Tone } from "../../../components/badge.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { read } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import type { Activity } from "../agent.ts";

const TYPES: Readonly<Record<string, readonly [Tone, string]>> = {
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
  const received = useActivityStream(path);
  return (
    <ResourceView of={recent}>
      {(recentEvents) => {
        const receivedKeys = new Set(received.map(keyOf));
        const all = [...received, ...recentEvents.filter((event) => !receivedKeys.has(keyOf(event)))].slice(
          0,
          MAX_SHOWN,
        );
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
              { title: "Time", cell: (event) => <Time at={event.timestamp} /> },
              {
                title: "Event",
                cell: ({ type }) => {
                  const [tone, title] = TYPES[type] ?? (["neutral", type] as const);
                  return <Badge tone={tone}>{title}</Badge>;
                },
              },
              { title: "Details", cell: (event) => <code>{detailText(event.detail)}</code> },
            ]}
          />
        );
      }}
    </ResourceView>
  );
}

function useActivityStream(path: string): readonly Activity[] {
  const [received, setReceived] = useState<readonly Activity[]>([]);
  useEffect(() => {
    const source = new EventSource(path);
    const listen = (event: MessageEvent<string>) =>
      setReceived((before) => [JSON.parse(event.data) as Activity, ...before].slice(0, MAX_SHOWN));
    for (const type of Object.keys(TYPES)) source.addEventListener(type, listen);
    return () => source.close();
  }, [path]);
  return received;
}

function keyOf({ type, timestamp, detail }: Activity): string {
  return JSON.stringify([type, timestamp, detail]);
}

function detailText(detail: Activity["detail"]): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(" ");
}
