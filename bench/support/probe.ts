/** `GET /healthz` every 20 ms: the longest answer shows how long the server, or access to it, was blocked. */
import { buildRequest } from "./requests.ts";
import { timeRequest } from "./node-load.ts";

const INTERVAL_MS = 20;
const REQUEST = buildRequest("GET", "/healthz");

export interface Probe {
  /** The longest answer so far, in milliseconds. */
  stop(): Promise<number>;
}

export function startProbe(port: number): Probe {
  let longest = 0;
  const pending = new Set<Promise<void>>();
  const send = () => {
    const startedAt = performance.now();
    const request = timeRequest(port, REQUEST).then(() => {
      longest = Math.max(longest, performance.now() - startedAt);
      pending.delete(request);
    });
    pending.add(request);
  };
  send();
  const timer = setInterval(send, INTERVAL_MS);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(pending);
      return longest;
    },
  };
}
