/**
 * The events of an instance as they occur, over the event stream of the management interface. Unlike a connection to the instance, the
 * stream neither wakes the instance nor appears among its events and connections.
 */
import { useEffect, useRef, useState } from "react";
import { openEventStream } from "../../http/event-stream.ts";
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

/** `onEvent` gets each event; null if some were missed or the stream was interrupted, so that the reader must read again. */
export function useActivity(path: string, onEvent: (event: Activity | null) => void): WatchStatus {
  const [status, setStatus] = useState<WatchStatus>("connecting");
  const newest = useRef(onEvent);
  newest.current = onEvent;
  useEffect(() => {
    let wasOpen = false;
    return openEventStream(
      () => path,
      (source) => {
        source.addEventListener("open", () => {
          setStatus("live");
          if (wasOpen) newest.current(null);
          wasOpen = true;
        });
        source.addEventListener("error", () => setStatus("reconnecting"));
        for (const type of TYPES)
          source.addEventListener(type, (event: MessageEvent<string>) =>
            newest.current(JSON.parse(event.data) as Activity),
          );
        source.addEventListener(MISSED, () => newest.current(null));
      },
    );
  }, [path]);
  return status;
}
