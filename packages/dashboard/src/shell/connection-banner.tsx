import { useEffect, useRef, useState } from "react";
import { useConnection } from "../http/connection.ts";

const SHOWN_MS = 4000;

/** Says that the service does not answer or cannot be reached, and for some seconds that it can be reached again. */
export function ConnectionBanner() {
  const connection = useConnection();
  const isLost = connection === "lost";
  const [isBack, setBack] = useState(false);
  const wasLost = useRef(false);
  useEffect(() => {
    if (isLost) {
      wasLost.current = true;
      setBack(false);
      return undefined;
    }
    if (!wasLost.current) return undefined;
    wasLost.current = false;
    setBack(true);
    const timer = setTimeout(() => setBack(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isLost]);
  return (
    <div role="status" className="connection">
      {isLost && <span className="connection-lost">Connection lost. Reconnecting…</span>}
      {connection === "slow" && <span className="connection-lost">The server does not answer yet…</span>}
      {isBack && connection === "working" && <span className="connection-back">Connected again</span>}
    </div>
  );
}
