import { useEffect, useRef, useState } from "react";
import { useConnectionLost } from "../http/connection.ts";

const SHOWN_MS = 4000;

/** Says that the service cannot be reached, and for some seconds that it is back. */
export function ConnectionBanner() {
  const isLost = useConnectionLost();
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
      {isBack && <span className="connection-back">Connected again</span>}
    </div>
  );
}
