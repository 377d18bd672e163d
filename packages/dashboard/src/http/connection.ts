/**
 * Whether the service answers.
 *
 * States: working → slow (a request has waited for two seconds) → working, and working or slow → lost (a request could not be sent, or a proxy
 * answered for the service) → working. While lost, a small request is repeated, slower each time; with the first answer, `RECONNECTED` is
 * dispatched, and what failed is read again. So pages that do not poll recover, too.
 */
import { useSyncExternalStore } from "react";

export type Connection = "working" | "slow" | "lost";

/** Dispatched on `window` when the service answers again. */
export const RECONNECTED = "signalbox:reconnected";
const CHANGED = "signalbox:connection";
const PROBE_PATH = "/dashboard/session";
const FIRST_PROBE_MS = 1000;
const MAX_PROBE_MS = 10_000;
/** Longer than any usual answer, and about when a user begins to wonder. */
const SLOW_MS = 2000;

let isLost = false;
let slowRequests = 0;
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

/** Resolves as the request does. If it takes long, the connection is slow until then. */
export async function watchRequest<T>(answer: Promise<T>): Promise<T> {
  let isSlow = false;
  const wait = setTimeout(() => {
    isSlow = true;
    slowRequests += 1;
    dispatchEvent(new Event(CHANGED));
  }, SLOW_MS);
  try {
    return await answer;
  } finally {
    clearTimeout(wait);
    if (isSlow) {
      slowRequests -= 1;
      dispatchEvent(new Event(CHANGED));
    }
  }
}

/** Sends the small request now. Resolves to whether the service answered it. */
export async function checkConnection(): Promise<boolean> {
  const signal = AbortSignal.timeout(MAX_PROBE_MS);
  const probe = fetch(PROBE_PATH, { cache: "no-store", signal });
  const isAway = await watchRequest(probe).then(isServiceAway, () => true);
  if (isAway) connectionLost();
  else connectionWorks();
  return !isAway;
}

/** Resolves when the service answers again; at once if it does. */
export async function reconnected(): Promise<void> {
  if (isLost) await new Promise((resolve) => addEventListener(RECONNECTED, resolve, { once: true }));
}

/** A proxy answers for a service that is down. The service itself answers errors in JSON. */
export function isServiceAway({ status, headers }: Pick<Response, "status" | "headers">): boolean {
  return status >= 502 && status <= 504 && headers.get("content-type")?.includes("json") !== true;
}

export function useConnection(): Connection {
  return useSyncExternalStore(subscribe, () => (isLost ? "lost" : slowRequests > 0 ? "slow" : "working"));
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
  if (!(await checkConnection())) probeAfter(Math.min(MAX_PROBE_MS, delayMs * 1.7));
}

// The browser knows earlier than a probe that the network is back.
if (typeof addEventListener === "function") addEventListener("online", () => isLost && probeAfter(0));
