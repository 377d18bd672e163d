/** What the listener, dispatch, request ids and metrics cost: `GET /healthz` against node:http alone with the same answer. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildRequest, runLoad } from "../support/load.ts";
import { startOnCore } from "../support/server-on-core.ts";
import type { Contender, Workload } from "../support/workload.ts";

const CLI = join(import.meta.dirname, "../../packages/signalbox/bin/signalbox.js");
const BARE = join(import.meta.dirname, "../rivals/bare-http.ts");
const SCENARIO = "GET /healthz, 32 connections";
const REQUEST = buildRequest("GET", "/healthz");

function contender(
  name: string,
  command: () => readonly string[],
  cleanUp: () => void = () => undefined,
): Contender {
  return {
    name,
    async start() {
      const server = await startOnCore(command());
      const { url } = JSON.parse(server.firstLine) as { url: string };
      const port = Number(new URL(url).port);
      const load = (durationMs: number) =>
        runLoad({ port, connections: 32, durationMs, request: () => REQUEST });
      await load(1500);
      return {
        async measure() {
          const cpuBefore = server.cpuMs() ?? 0;
          const { requests, perSecond, p50Ms, p99Ms, unexpected } = await load(2500);
          if (unexpected > 0) throw new Error(`${name} answered ${unexpected} requests with an error`);
          const cpu = (((server.cpuMs() ?? 0) - cpuBefore) * 1000) / requests;
          return { requests: perSecond, p50: p50Ms, p99: p99Ms, cpu };
        },
        async stop() {
          await server.stop();
          cleanUp();
        },
      };
    },
  };
}

const dataDir = mkdtempSync(join(tmpdir(), "signalbox-bench-"));

export const workload: Workload = {
  name: "listener",
  summary: "the bare listener against node:http alone, one core each",
  rounds: 7,
  contenders: [
    contender(
      "signalbox",
      () => [process.execPath, CLI, "serve", "--json", "--port", "0", "--data-dir", dataDir],
      () => rmSync(dataDir, { recursive: true, force: true }),
    ),
    contender("node:http", () => [process.execPath, BARE]),
  ],
  scenarios: [
    {
      name: SCENARIO,
      metrics: [
        { name: "requests", unit: "1/s", better: "higher" },
        { name: "p50", unit: "ms", better: "lower" },
        { name: "p99", unit: "ms", better: "lower" },
        { name: "cpu", unit: "µs a request", better: "lower" },
      ],
    },
  ],
  goals: [
    {
      text: "at least 85 % of node:http's requests per second",
      isMet: (median) =>
        (median("signalbox", SCENARIO, "requests") ?? 0) >=
        0.85 * (median("node:http", SCENARIO, "requests") ?? Infinity),
    },
  ],
};
