import { useEffect, useState } from "react";
import { shortTime } from "../format/time.ts";

/** A relative time ("4 min ago"). The tooltip and the `datetime` attribute contain the exact time. */
export function Time({ at, fallback = "never" }: { readonly at: string | null; readonly fallback?: string }) {
  const now = useNow();
  if (at === null) return <span className="muted">{fallback}</span>;
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {shortTime(date.getTime(), now)}
    </time>
  );
}

const TICK_MS = 15_000;

function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return Math.max(now, 0);
}
