/**
 * Many schedules that are due at one moment: how long all of them take, and how long everybody else waits meanwhile. Once while the server runs, and once
 * overdue after a restart.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { meterCpu } from "../support/cpu-times.ts";
import { runLoad } from "../support/load.ts";
import { timeRequest } from "../support/node-load.ts";
import { startProbe } from "../support/probe.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { buildRequest, SEQUENCE_MARKER } from "../support/requests.ts";
import { type RunningSignalbox, startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { percentile } from "../support/statistics.ts";
import { type Contender, ownFigure, type Sample, type Workload } from "../support/workload.ts";

const AGENT = join(import.meta.dirname, "../support/due-agent.ts");
const TOKEN = "sbx_benchmark_of_due_work";
const HEADERS = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const SCHEDULES = sized(20_000);
/** Creating the instances must have ended when their schedules are due. */
const LEAD_MS = Math.max(10_000, sized(60_000));
const COUNT = SCHEDULES.toLocaleString("en");
const AT_ONCE = `${COUNT} schedules due at one moment`;
const OVERDUE = `${COUNT} schedules overdue at the start`;
const CALL = buildRequest(
  "POST",
  "/v1/default/default/echo/chat/completions",
  { "content-type": "application/json" },
  JSON.stringify({ model: "echo", messages: [{ role: "user", content: "Hello" }] }),
);

function startOn(checkout: string, dataDir: string): Promise<RunningSignalbox> {
  return startSignalbox({
    checkout,
    dataDir,
    config: { agents: { modules: [AGENT] } },
    env: { SIGNALBOX_ROOT_TOKEN: TOKEN, SIGNALBOX_LOG_LEVEL: "error" },
  });
}

async function plan({ port }: RunningSignalbox, dueAt: number): Promise<void> {
  const path = `/agents/due-agent/i${SEQUENCE_MARKER}/rpc/plan`;
  const requests = [buildRequest("POST", path, HEADERS, JSON.stringify([dueAt]))];
  await runLoad({ port, connections: 64, durationMs: LEAD_MS, maxRequests: SCHEDULES, requests });
  if (Date.now() >= dueAt) throw new Error("the schedules were due before all of them were created");
}

async function ranOf({ url }: RunningSignalbox): Promise<number> {
  const response = await fetch(`${url}/agents/due-agent/counter/rpc/ran`, {
    method: "POST",
    headers: HEADERS,
    body: "[]",
  });
  const { result } = (await response.json()) as { result: number };
  return result;
}

/** Until all have run: their time, that of calls of the gateway one after the other, and the longest wait for `/healthz`. */
async function measure(server: RunningSignalbox): Promise<Sample> {
  const startedAt = performance.now();
  const meter = meterCpu(server);
  const probe = startProbe(server.port);
  const waits: number[] = [];
  let isDone = false;
  const calling = (async () => {
    while (!isDone) {
      waits.push(await timeRequest(server.port, CALL));
      await pause(5);
    }
  })();
  while ((await ranOf(server)) < SCHEDULES) await pause(100);
  const seconds = (performance.now() - startedAt) / 1000;
  // Of the calls and probes of these seconds, too: they are few beside the wakes.
  const { cpu } = meter(SCHEDULES);
  isDone = true;
  await calling;
  waits.sort((a, b) => a - b);
  return {
    seconds,
    p50: percentile(waits, 0.5),
    p99: percentile(waits, 0.99),
    healthz: await probe.stop(),
    ...(cpu === undefined ? {} : { cpu }),
  };
}

function signalboxAt(checkout: string): Contender {
  return {
    name: "signalbox",
    async start() {
      const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-due-"));
      process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
      let server: RunningSignalbox | null = null;
      let runs = 0;
      return {
        async measure(scenario) {
          await server?.stop();
          runs += 1;
          const dataDir = join(folder, `data-${runs}`);
          server = await startOn(checkout, dataDir);
          const dueAt = Date.now() + LEAD_MS;
          await plan(server, dueAt);
          if (scenario === OVERDUE) await server.stop();
          await pause(Math.max(0, dueAt - Date.now()));
          if (scenario === OVERDUE) server = await startOn(checkout, dataDir);
          return measure(server);
        },
        stop: async () => server?.stop(),
      };
    },
  };
}

const METRICS = [
  { name: "seconds", unit: "s until all have run", better: "lower" },
  { name: "p50", unit: "ms of a gateway call", better: "lower" },
  { name: "p99", unit: "ms of a gateway call", better: "lower" },
  { name: "healthz", unit: "ms at most", better: "lower", isDetail: true },
  { name: "cpu", unit: "µs of CPU time for an instance", better: "lower", isDetail: true },
] as const;

export const workload: Workload = {
  name: "due-work",
  summary: "20,000 schedules due at one moment, or overdue after a restart, and what others wait meanwhile",
  rounds: roundsOf(1),
  contenders: [signalboxAt(THIS_CHECKOUT)],
  oursAt: signalboxAt,
  scenarios: [AT_ONCE, OVERDUE].map((name) => ({ name, metrics: METRICS })),
  goals: [
    ...[AT_ONCE, OVERDUE].map((scenario) => ({
      text: `${scenario}: a gateway call waits at most 50 ms at the 99th percentile`,
      isMet: (median: (contender: string, scenario: string, metric: string) => number | null) =>
        (median("signalbox", scenario, "p99") ?? Infinity) <= 50,
    })),
    {
      text: "all have run within 32 s, as they did without a bound for the others",
      isMet: (median) =>
        [AT_ONCE, OVERDUE].every((scenario) => (median("signalbox", scenario, "seconds") ?? Infinity) <= 32),
    },
  ],
  headlines: [
    ownFigure(
      "for a gateway call at the 99th percentile while 20,000 schedules are due",
      AT_ONCE,
      "p99",
      "ms",
    ),
  ],
};
