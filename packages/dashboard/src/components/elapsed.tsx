import { useEffect, useState } from "react";
import { duration } from "../format/number.ts";
import { exactTime } from "../format/time.ts";

const TICK_MS = 1000;

/** How long something has been running: "19 s". Zero if the clock of the service is ahead. */
export function Elapsed({ since }: { readonly since: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  return (
    <time dateTime={since} title={exactTime(Date.parse(since))}>
      {seconds < 60 ? `${seconds} s` : duration(seconds * 1000)}
    </time>
  );
}
