/**
 * What limits add to a call, with SQLite and with PostgreSQL, where nodes share them. A provider in this process answers after ten milliseconds, as
 * 16 clients call. Far below a limit a node takes amounts ahead, and a call waits for nothing; above four fifths of it, each call waits for the
 * database. There the limit is 20 parallel calls, of which 16 run. The last scenario measures the wait itself, which a busy machine disturbs less.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { openTestPostgres } from "../../test/support/test-postgres.ts";
import { openAdmissions } from "../support/admission.ts";
import { totalUs } from "../support/cpu-times.ts";
import { runLoad } from "../support/load.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { buildRequest } from "../support/requests.ts";
import { type RunningSignalbox, startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { loadMetrics, type RunningContender, type Workload } from "../support/workload.ts";

const TOKEN = "root-token-of-the-benchmark-of-limits";
const DELAY_MS = 10;
const CONNECTIONS = 16;
const DURATION_MS = sized(5000);
const WARM_UP_MS = 500;

const FREE = "without a limit";
const FAR = "under four limits, far below them";
const NEAR = "above four fifths of a limit";
const ADMISSION = "the wait for limits of four nodes, far below them";

const RULES = [
  { id: "cost", limitType: "cost", limit: 1_000_000, window: "day" },
  { id: "tokens", limitType: "tokens", limit: 1_000_000_000, window: 3600, technique: "sliding" },
  { id: "parallel", limitType: "parallel", limit: 1000 },
];
const GATEWAYS = [
  { id: "free", name: FREE, settings: {} },
  {
    id: "far",
    name: FAR,
    settings: {
      rate_limiting_limit: 10_000_000,
      rate_limiting_interval: 3600,
      spend_limits: { rules: RULES },
    },
  },
  {
    id: "near",
    name: NEAR,
    settings: { spend_limits: { rules: [{ id: "p", limitType: "parallel", limit: 20 }] } },
  },
];

async function startProvider(): Promise<{ readonly url: string; close(): void }> {
  const body = JSON.stringify({ model: "m", usage: { prompt_tokens: 10, completion_tokens: 20 } });
  const server = createServer((request, response) => {
    request.resume();
    setTimeout(() => {
      response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
      response.end(body);
    }, DELAY_MS);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close() };
}

async function addGateway({ url }: RunningSignalbox, id: string, settings: object): Promise<void> {
  const answer = await fetch(`${url}/accounts/default/ai-gateway/gateways`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ id, ...settings }),
  });
  if (!answer.ok) throw new Error(`cannot create the gateway ${id}: ${await answer.text()}`);
}

async function start(engine: "SQLite" | "PostgreSQL"): Promise<RunningContender> {
  const provider = await startProvider();
  const postgres = engine === "SQLite" ? null : await openTestPostgres();
  const admissions = engine === "SQLite" ? null : await openAdmissions(RULES);
  const server = await startSignalbox({
    checkout: THIS_CHECKOUT,
    config: {
      providers: { openai: { baseUrl: provider.url } },
      gateway: { prices: { openai: { m: { in: 1, out: 1 } } } },
    },
    env: {
      SIGNALBOX_ROOT_TOKEN: TOKEN,
      ...(postgres === null
        ? {}
        : {
            DATABASE_URL: postgres.url,
            SIGNALBOX_ENCRYPTION_KEY: TOKEN,
            SIGNALBOX_MASTER_KEY: "ab".repeat(32),
          }),
    },
  });
  for (const { id, settings } of GATEWAYS) await addGateway(server, id, settings);
  return {
    cpuTimes: server.cpuTimes,
    async measure(scenario) {
      if (scenario === ADMISSION) return (await admissions?.measure(DURATION_MS)) ?? null;
      const gateway = GATEWAYS.find(({ name }) => name === scenario);
      const path = `/v1/default/${gateway?.id}/openai/chat/completions`;
      const body = JSON.stringify({ model: "m", max_tokens: 20 });
      const requests = [buildRequest("POST", path, { "content-type": "application/json" }, body)];
      const load = { port: server.port, connections: CONNECTIONS, requests };
      await runLoad({ ...load, durationMs: WARM_UP_MS });
      const before = totalUs(server.cpuTimes());
      const result = await runLoad({ ...load, durationMs: DURATION_MS });
      return {
        cpu: (totalUs(server.cpuTimes()) - before) / result.requests,
        calls: result.perSecond,
        p50: result.p50Ms,
        p99: result.p99Ms,
      };
    },
    async stop() {
      await server.stop();
      provider.close();
      await admissions?.stop();
      await postgres?.drop();
    },
  };
}

export const workload: Workload = {
  name: "limits",
  summary: "calls of a provider that answers after 10 ms, 16 at a time, with and without limits",
  rounds: roundsOf(5),
  contenders: [
    { name: "PostgreSQL", start: () => start("PostgreSQL") },
    { name: "SQLite", start: () => start("SQLite") },
  ],
  scenarios: [
    ...[FREE, FAR, NEAR].map((name) => ({ name, metrics: loadMetrics("calls", "call") })),
    {
      name: ADMISSION,
      metrics: [
        { name: "p50", unit: "µs", better: "lower" },
        { name: "p99", unit: "µs", better: "lower" },
        { name: "waited", unit: "%", better: "lower" },
      ],
    },
  ],
  goals: [
    {
      text: "far below its limits the median call waits at most 5 % of its 10 ms for them",
      isMet: (median) => (median("PostgreSQL", ADMISSION, "p50") ?? Infinity) <= 500,
    },
    {
      text: "below four fifths of its limits the median call takes at most 5 % longer than without limits (PostgreSQL)",
      isMet: (median) =>
        (median("PostgreSQL", FAR, "p50") ?? Infinity) <= 1.05 * (median("PostgreSQL", FREE, "p50") ?? 0),
    },
  ],
};
