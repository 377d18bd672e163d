/** What the listener, dispatch, request ids and metrics cost: `GET /healthz` against node:http alone with the same answer. */
import { join } from "node:path";
import { meterCpu } from "../support/cpu-times.ts";
import { runLoad } from "../support/load.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { buildRequest } from "../support/requests.ts";
import { type ServerOnCore, startOnCore } from "../support/server-on-core.ts";
import { startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { type Contender, loadMetrics, type Workload } from "../support/workload.ts";

const BARE = join(import.meta.dirname, "../rivals/bare-http.ts");
const SCENARIO = "GET /healthz, 32 connections";
const REQUESTS = [buildRequest("GET", "/healthz")];

function contender(name: string, startServer: () => Promise<ServerOnCore>): Contender {
  return {
    name,
    async start() {
      const server = await startServer();
      const { url } = JSON.parse(server.firstLine) as { url: string };
      const port = Number(new URL(url).port);
      const load = (durationMs: number) => runLoad({ port, connections: 32, durationMs, requests: REQUESTS });
      await load(1500);
      return {
        async measure() {
          const cpu = meterCpu(server);
          const { requests, perSecond, p50Ms, p99Ms } = await load(sized(2500));
          return { requests: perSecond, p50: p50Ms, p99: p99Ms, ...cpu(requests) };
        },
        cpuTimes: server.cpuTimes,
        stop: () => server.stop(),
      };
    },
  };
}

const signalboxAt = (checkout: string) => contender("signalbox", () => startSignalbox({ checkout }));

export const workload: Workload = {
  name: "listener",
  summary: "the bare listener against node:http alone, one core each",
  rounds: roundsOf(7),
  contenders: [
    signalboxAt(THIS_CHECKOUT),
    contender("node:http", () => startOnCore([process.execPath, BARE])),
  ],
  oursAt: signalboxAt,
  scenarios: [{ name: SCENARIO, metrics: loadMetrics("requests", "request") }],
  goals: [
    {
      text: "at least 85 % of node:http's requests per second",
      isMet: (median) =>
        (median("signalbox", SCENARIO, "requests") ?? 0) >=
        0.85 * (median("node:http", SCENARIO, "requests") ?? Infinity),
    },
  ],
};
