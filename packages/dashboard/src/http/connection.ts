/**
 * Whether the service can be reached.
 *
 * States: working → lost (a request could not be sent, or a proxy answered for the service) → working. While lost, a small request is repeated, slower each time; with the first
 * answer, `RECONNECTED` is dispatched and resources that failed are read again. So pages that do not poll recover, too.
 */
import { useSyncExternalStore } from "react";

/** Dispatched on `window` when the service answers again. */
export const RECONNECTED = "signalbox:reconnected";
const CHANGED = "signalbox:connection";
const PROBE_PATH = "/dashboard/session";
const FIRST_PROBE_MS = 1000;
const MAX_PROBE_MS = 10_000;

let isLost = false;
let timer: ReturnType<typeof setTimeout> | undefined;

export function connectionLost(): void {
  if (isLost) return;
  isLost = true;
  dispatchEvent(new Event(CHANGED));
  probeAfter(FIRST_PROBE_MS);
}

export function connectionWorks(): void {
  if (!isLost) return;
  isLost = false;
  clearTimeout(timer);
  dispatchEvent(new Event(CHANGED));
  dispatchEvent(new Event(RECONNECTED));
}

/** A proxy answers for a service that is down. The service itself answers errors in JSON. */
export function isServiceAway({ status, headers }: Pick<Response, "status" | "headers">): boolean {
  return status >= 502 && status <= 504 && headers.get("content-type")?.includes("json") !== true;
}

export function useConnectionLost(): boolean {
  return useSyncExternalStore(subscribe, () => isLost);
}

function subscribe(onChange: () => void): () => void {
  addEventListener(CHANGED, onChange);
  return () => removeEventListener(CHANGED, onChange);
}

function probeAfter(delayMs: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void probe(delayMs), delayMs);
}

async function probe(delayMs: number): Promise<void> {
  const isAway = await fetch(PROBE_PATH, { cache: "no-store" }).then(isServiceAway, () => true);
  if (!isAway) connectionWorks();
  else if (isLost) probeAfter(Math.min(MAX_PROBE_MS, delayMs * 1.7));
}

// The browser knows earlier than a probe that the network is back.
if (typeof addEventListener === "function") addEventListener("online", () => isLost && probeAfter(0));
