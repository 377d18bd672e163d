/** Turns as dense rows: when, what, how long, and whether it failed or changed the state. */
import { useState } from "react";
import { duration, plural } from "../../../format/number.ts";
import { exactTime, millisecondTime, weekdayOf } from "../../../format/time.ts";
import type { RecordedTurn } from "../agent.ts";
import { TurnDetails } from "./turn-details.tsx";

const KINDS: Readonly<Record<string, string>> = {
  rpc: "call",
  close: "disconnect",
};

export function TurnList({
  turns,
  path,
}: {
  readonly turns: readonly RecordedTurn[];
  readonly path: string;
}) {
  // They come in the order in which they ended, and turns that wait for something overlap.
  const byStart = turns.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at));
  return (
    <ol className="timeline" aria-label="Turns">
      {byStart.map((turn, i) => {
        const before = byStart[i - 1];
        const day = weekdayOf(Date.parse(turn.at));
        return (
          <li key={turn.id}>
            {(before === undefined || weekdayOf(Date.parse(before.at)) !== day) && (
              <p className="timeline-day">{day}</p>
            )}
            <TurnRow turn={turn} path={path} />
            {turn.skipped > 0 && (
              <p className="timeline-gap">
                {plural(turn.skipped, "turn")} before this one not recorded: too many at once
              </p>
            )}
          </li>
        );
      })}
    </ol>
  );
}

function TurnRow({ turn, path }: { readonly turn: RecordedTurn; readonly path: string }) {
  const [isOpen, setOpen] = useState(false);
  const { id, at, kind, label, error, duration_ms: ms } = turn;
  return (
    <details
      className={`turn ${error === null ? "" : "turn-failed"}`}
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <time className="turn-time" dateTime={at} title={exactTime(Date.parse(at))}>
          {millisecondTime(Date.parse(at))}
        </time>
        <span className="turn-kind">{KINDS[kind] ?? kind}</span>
        <span className="turn-what">
          <code>{label}</code>
          {error !== null && <span className="turn-error">{error}</span>}
        </span>
        <span className="turn-mark">{turn.changes_state && "state"}</span>
        <span className="turn-bar" aria-hidden="true">
          <svg viewBox="0 0 100 6" preserveAspectRatio="none">
            <rect width={barWidth(ms)} height="6" rx="1" />
          </svg>
        </span>
        <span className="turn-duration">{duration(ms)}</span>
      </summary>
      {isOpen && <TurnDetails path={`${path}/${encodeURIComponent(id)}`} turn={turn} />}
    </details>
  );
}

/** On a logarithmic scale: a tenth of a millisecond is nothing, ten seconds are the whole width. */
function barWidth(ms: number): number {
  const decades = Math.log10(Math.max(ms, 0.1) / 0.1);
  return Math.min(100, Math.max(2, decades * 20));
}
