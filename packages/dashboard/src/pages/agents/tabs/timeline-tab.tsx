/** What the instance did in the last day: its turns, newest first. A turn opens with its payload and what it changed. */
import { useEffect, useRef } from "react";
import { Button } from "../../../components/button.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { withQuery } from "../../../http/api.ts";
import { useList } from "../../../http/use-list.ts";
import { useQueryValue } from "../../../routing/location.ts";
import type { RecordedTurn } from "../agent.ts";
import { TurnList } from "../timeline/turn-list.tsx";
import { useActivity } from "../use-activity.ts";
import { WatchBadge } from "../watch-badge.tsx";

const FILTERS: readonly (readonly [value: string, title: string])[] = [
  ["", "All"],
  ["delivery", "Deliveries"],
  ["rpc", "Calls"],
  ["queue", "Queue"],
  ["schedule", "Schedules"],
  ["failed", "Failed"],
];
/** A busy instance has thousands of turns in a second; the list is read again so often at most. */
const REFRESH_MS = 1000;

interface TimelineTabProps {
  readonly path: string;
  /** Of the event stream. */
  readonly eventsPath: string;
}

export function TimelineTab({ path, eventsPath }: TimelineTabProps) {
  const [show, setShow] = useQueryValue("show");
  const query = show === "failed" ? { failed: "true" } : { kind: show };
  const turns = useList<RecordedTurn>(withQuery(path, query));
  const readSoon = useReadSoon(turns.reload);
  const status = useActivity(eventsPath, (event) => {
    if (event === null || event.type === "turn" || event.type === "turn:error") readSoon();
  });
  return (
    <section className="section" aria-labelledby="timeline-title">
      <div className="row spread">
        <h2 id="timeline-title">Timeline</h2>
        <WatchBadge status={status} />
      </div>
      <div className="segments" role="group" aria-label="Show">
        {FILTERS.map(([value, title]) => (
          <button key={value} type="button" aria-pressed={value === show} onClick={() => setShow(value)}>
            {title}
          </button>
        ))}
      </div>
      <ResourceView of={turns}>
        {(rows) =>
          rows.length === 0 ? <NoTurns isFiltered={show !== ""} /> : <TurnList turns={rows} path={path} />
        }
      </ResourceView>
      {turns.hasMore && (
        <div>
          <Button onClick={turns.loadMore}>Show earlier turns</Button>
        </div>
      )}
    </section>
  );
}

function NoTurns({ isFiltered }: { readonly isFiltered: boolean }) {
  return (
    <EmptyState title={isFiltered ? "No such turns" : "No turns in the last day"}>
      <p>
        {isFiltered
          ? "The instance did nothing of this kind in the last day."
          : "Deliveries, calls, queue items and schedules appear here with their payload and what they changed, for a day."}
      </p>
    </EmptyState>
  );
}

/** Reads at the end of each interval in which something happened: a turn is listed shortly after it has ended. */
function useReadSoon(reload: () => void): () => void {
  const timer = useRef<number | null>(null);
  useEffect(() => {
    return () => {
      if (timer.current !== null) clearTimeout(timer.current);
    };
  }, []);
  return () => {
    timer.current ??= window.setTimeout(() => {
      timer.current = null;
      reload();
    }, REFRESH_MS);
  };
}
