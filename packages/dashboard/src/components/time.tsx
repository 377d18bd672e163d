import { useEffect, useState } from "react";
import { dueTime, pastTime } from "../format/time.ts";

interface TimeProps {
  readonly at: string | null;
  readonly fallback?: string;
  /** The time of something that is still to come, such as an expiry: "in 3 d". Default: something that has happened. */
  readonly isDue?: boolean;
}

/** A relative time ("4 min ago"). The tooltip and the `datetime` attribute contain the exact time. */
export function Time({ at, fallback = "never", isDue = false }: TimeProps) {
  useTick();
  if (at === null) return <span className="muted">{fallback}</span>;
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {(isDue ? dueTime : pastTime)(date.getTime(), Date.now())}
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
