import { useEffect, useState } from "react";
import { clockTime, dueTime, exactTime, pastTime } from "../format/time.ts";

interface TimeProps {
  readonly at: string | null;
  readonly fallback?: string;
  /** The time of something that is still to come, such as an expiry: "in 3 d". Default: something that has happened. */
  readonly isDue?: boolean;
  /** `clock` in a log whose rows are seconds apart, `exact` in details. Default: how long ago it was. */
  readonly as?: "clock" | "exact";
}

/** A relative time ("4 min ago"), or another way of `format/time.ts`. The tooltip is always the exact time. */
export function Time({ at, fallback = "never", isDue = false, as }: TimeProps) {
  useTick();
  if (at === null) return <span className="muted">{fallback}</span>;
  const time = Date.parse(at);
  return (
    <time dateTime={new Date(time).toISOString()} title={exactTime(time)}>
      {as === "exact"
        ? exactTime(time)
        : (as === "clock" ? clockTime : isDue ? dueTime : pastTime)(time, Date.now())}
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
