/** What the instance does: the last events it remembers, then each one as it happens. */
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
  start: ["accent", "woke up"],
  hibernate: ["neutral", "went to sleep"],
  destroy: ["bad", "destroyed"],
  turn: ["neutral", "turn"],
  "turn:error": ["bad", "turn failed"],
  state: ["good", "state changed"],
  connect: ["neutral", "client connected"],
  disconnect: ["neutral", "client left"],
  buried: ["bad", "gave up on work"],
};
const MAX_SHOWN = 200;

export function EventsTab({ path }: { readonly path: string }) {
  const recent = useResource(path, (signal) => read<Activity[]>(path, signal));
  const arrived = useActivityStream(path);
  return (
    <ResourceView of={recent}>
      {(known) => {
        const seen = new Set(arrived.map(keyOf));
        const all = [...arrived, ...known.filter((event) => !seen.has(keyOf(event)))].slice(0, MAX_SHOWN);
        return all.length === 0 ? (
          <EmptyState title="Quiet since it woke up">
            <p>
              Turns, state changes and connections appear here as they happen. An instance remembers its last
              twenty while it is awake.
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
                title: "What",
                cell: ({ type }) => {
                  const [tone, title] = TYPES[type] ?? (["neutral", type] as const);
                  return <Badge tone={tone}>{title}</Badge>;
                },
              },
              { title: "Detail", cell: (event) => <code>{detailText(event.detail)}</code> },
            ]}
          />
        );
      }}
    </ResourceView>
  );
}

function useActivityStream(path: string): readonly Activity[] {
  const [arrived, setArrived] = useState<readonly Activity[]>([]);
  useEffect(() => {
    const source = new EventSource(path);
    const listen = (event: MessageEvent<string>) =>
      setArrived((before) => [JSON.parse(event.data) as Activity, ...before].slice(0, MAX_SHOWN));
    for (const type of Object.keys(TYPES)) source.addEventListener(type, listen);
    return () => source.close();
  }, [path]);
  return arrived;
}

function keyOf({ type, timestamp, detail }: Activity): string {
  return JSON.stringify([type, timestamp, detail]);
}

function detailText(detail: Activity["detail"]): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(" ");
}
