/**
 * The events of an instance as they occur, over the event stream of the management interface. Unlike a connection to the instance, the
 * stream neither wakes the instance nor appears among its events and connections.
 */
import { useEffect, useRef, useState } from "react";
import type { Activity } from "./agent.ts";

export type WatchStatus = "connecting" | "live" | "reconnecting";

/** The events that the service sends. `missed` reports events that were dropped because the reader was too slow. */
const TYPES = [
  "start",
  "hibernate",
  "destroy",
  "turn",
  "turn:error",
  "state",
  "connect",
  "disconnect",
  "buried",
] as const;
const MISSED = "missed";
/** After a response that is not a stream, the browser does not reconnect by itself. */
const REOPEN_MS = 3000;

/** `onEvent` gets each event; null if some were missed or the stream was interrupted, so that the reader must read again. */
export function useActivity(path: string, onEvent: (event: Activity | null) => void): WatchStatus {
  const [status, setStatus] = useState<WatchStatus>("connecting");
  const newest = useRef(onEvent);
  newest.current = onEvent;
  useEffect(() => {
    let source: EventSource | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wasOpen = false;
    const open = () => {
      source = new EventSource(path);
      source.addEventListener("open", () => {
        setStatus("live");
        if (wasOpen) newest.current(null);
        wasOpen = true;
      });
      source.addEventListener("error", () => {
        setStatus("reconnecting");
        if (source?.readyState === EventSource.CLOSED) timer = setTimeout(open, REOPEN_MS);
      });
      for (const type of TYPES)
        source.addEventListener(type, (event: MessageEvent<string>) =>
          newest.current(JSON.parse(event.data) as Activity),
        );
      source.addEventListener(MISSED, () => newest.current(null));
    };
    open();
    return () => {
      clearTimeout(timer);
      source?.close();
    };
  }, [path]);
  return status;
}
