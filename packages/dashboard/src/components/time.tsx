import { useEffect, useState } from "react";
import { shortTime } from "../format/time.ts";

/** A relative time ("4 min ago"). The tooltip and the `datetime` attribute contain the exact time. */
export function Time({ at, fallback = "never" }: { readonly at: string | null; readonly fallback?: string }) {
  useTick();
  if (at === null) return <span className="muted">{fallback}</span>;
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {shortTime(date.getTime(), Date.now())}
    </time>
  );
}

const TICK_MS = 15_000;

/** Renders again from time to time. The time itself is read at each rendering: a refresh may bring an event newer than the last tick. */
function useTick(): void {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), TICK_MS);
    return () => clearInterval(timer);
  }, []);
}
