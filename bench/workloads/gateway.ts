/**
 * The gateway as installed (authentication on, log rows and bodies kept) against other ways to put a relay before a provider. Every
 * contender has one core; load generator and provider share the other. The goals are judged on the default settings. The contender that
 * keeps rows only shows what bodies cost.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type GatewayTarget, startProvider } from "../rivals/gateways.ts";
import { startBare, startDirect, startNginx, startPortkey } from "../rivals/gateways.ts";
import { meterCpu } from "../support/cpu-times.ts";
import { runLoad } from "../support/load.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { buildRequest } from "../support/requests.ts";
import { startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import {
  type Contender,
  loadMetrics,
  type Median,
  ownFigure,
  type RunningContender,
  type Sample,
  timesRival,
  type Workload,
} from "../support/workload.ts";

const ROOT_TOKEN = "root-token-of-the-benchmark";

const ONE = "JSON, 1 connection";
const MANY = "JSON, 32 connections";
const TRICKLED = "64 streams of 50 events, 10 ms apart";
const BURST = "streams of 50 events in one write, 32 connections";
const MEMORY = "resident memory";
const RULED = "signalbox, three rules and a virtual key";
const TRACED = "signalbox, OpenTelemetry";

/** About 1 KB. The provider takes the user "burst" as the wish for one write. */
const message = { role: "user", content: "Tell me about the signal box by the railway line. ".repeat(17) };
const bodyOf = (options: object) => JSON.stringify({ model: "gpt-4o-mini", ...options, messages: [message] });
const BODIES: Readonly<Record<string, string>> = {
  [ONE]: bodyOf({}),
  [MANY]: bodyOf({}),
  [TRICKLED]: bodyOf({ stream: true }),
  [BURST]: bodyOf({ stream: true, user: "burst" }),
};
const CONNECTIONS: Readonly<Record<string, number>> = { [ONE]: 1, [MANY]: 32, [TRICKLED]: 64, [BURST]: 32 };
const LOAD_MS = sized(1500);
/** A trickled stream takes half a second, and many have to be measured. */
const TRICKLED_MS = sized(4000);
/** Until V8 has compiled what runs often; before, its helper threads take up to a third of the CPU time of a call. */
const WARM_UP_MS = sized(8000);
const MEMORY_CALLS = sized(100_000);
const MAX_MEMORY_MS = 120_000;

let provider: ReturnType<typeof startProvider> | undefined;
let users = 0;

/** The first contender starts the provider; the last one ends it. */
function useProvider(): ReturnType<typeof startProvider> {
  users += 1;
  return (provider ??= startProvider());
}

async function leaveProvider(): Promise<void> {
  users -= 1;
  if (users === 0) await (await provider)?.stop();
}

function contender(name: string, start: (providerPort: number) => Promise<GatewayTarget | null>): Contender {
  return {
    name,
    async start() {
      const target = await start((await useProvider()).port);
      if (target !== null) return measureOn(target, name === "signalbox");
      await leaveProvider();
      return null;
    },
  };
}

async function measureOn(target: GatewayTarget, withMemory: boolean): Promise<RunningContender> {
  const headers = { "content-type": "application/json", ...target.headers };
  const requests = Object.fromEntries(
    Object.entries(BODIES).map(([name, body]) => [name, [buildRequest("POST", target.path, headers, body)]]),
  );
  const load = (scenario: string, durationMs: number, maxRequests = 0) =>
    runLoad({
      port: target.port,
      connections: CONNECTIONS[scenario] ?? 1,
      durationMs,
      maxRequests,
      requests: requests[scenario] ?? [],
    });
  const measure = async (scenario: string): Promise<Sample> => {
    const cpu = target.process === null ? null : meterCpu(target.process);
    const result = await load(scenario, scenario === TRICKLED ? TRICKLED_MS : LOAD_MS);
    return {
      calls: result.perSecond,
      p50: result.p50Ms,
      p99: result.p99Ms,
      generator: result.generatorUs,
      ...cpu?.(result.requests),
    };
  };
  const megabytes = () => (target.process?.residentBytes() ?? 0) / 2 ** 20;
  /** Null if the machine is too slow to make all calls in time. */
  const measureMemory = async (): Promise<Sample> => {
    const halves: number[] = [];
    for (let half = 0; half < 2; half++) {
      const { requests: calls } = await load(MANY, MAX_MEMORY_MS, MEMORY_CALLS);
      if (calls < MEMORY_CALLS) return null;
      halves.push(megabytes());
    }
    return { first: halves[0] ?? 0, second: halves[1] ?? 0 };
  };
  await load(MANY, WARM_UP_MS);
  await load(BURST, WARM_UP_MS / 4);
  await load(TRICKLED, WARM_UP_MS / 8);
  return {
    measure(scenario, round) {
      if (scenario !== MEMORY) return measure(scenario);
      return withMemory && round === 0 ? measureMemory() : Promise.resolve(null);
    },
    ...(target.process === null ? {} : { cpuTimes: target.process.cpuTimes }),
    async stop() {
      await target.stop();
      await leaveProvider();
    },
  };
}

/** Three rules of the gateway, and a virtual key with a budget and a rate; none is ever exhausted. */
const LIMITS = {
  gateway: {
    spend_limits: {
      rules: [
        { id: "day", limitType: "cost", limit: 1_000_000, window: "day" },
        { id: "hour", limitType: "cost", limit: 1_000_000, window: 3600, technique: "sliding" },
        {
          id: "openai",
          limitType: "tokens",
          limit: 1e15,
          window: 60,
          provider: { mode: "filter", values: ["openai"] },
        },
      ],
    },
  },
  token: {
    budgets: [{ limit: 1_000_000, window: "month" }],
    rate_limits: [{ type: "requests", limit: 1_000_000_000, interval: 60 }],
  },
};

async function startOurs(
  providerPort: number,
  { keepsBodies = true, isLimited = false, isTraced = false },
  checkout = THIS_CHECKOUT,
): Promise<GatewayTarget> {
  const receiver = isTraced ? await startReceiver() : null;
  const server = await startSignalbox({
    checkout,
    config: { providers: { openai: { baseUrl: `http://127.0.0.1:${providerPort}/v1` } } },
    env: {
      SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN,
      // A queue that no load fills, so that every call has its spans.
      ...(receiver === null
        ? {}
        : { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_MAX_QUEUE_SIZE: "1000000" }),
    },
  });
  const gateway = "/ai-gateway/gateways/default";
  const manage = async (method: string, path: string, body: object) => {
    const response = await fetch(`${server.url}/accounts/default${path}`, {
      method,
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return ((await response.json()) as { result: { token: string } }).result;
  };
  await manage("PUT", gateway, { authentication: true, ...(isLimited ? LIMITS.gateway : {}) });
  const { token } = isLimited
    ? await manage("POST", "/tokens", { name: "bench", permissions: ["gateway.run"], ...LIMITS.token })
    : await manage("POST", `${gateway}/tokens`, {});
  return {
    port: server.port,
    path: "/v1/default/default/openai/chat/completions",
    headers: {
      authorization: "Bearer provider-key",
      "gw-aig-authorization": `Bearer ${token}`,
      ...(keepsBodies ? {} : { "gw-aig-collect-log-payload": "false" }),
    },
    process: server,
    async stop() {
      await server.stop();
      receiver?.stop();
    },
  };
}

/** Takes telemetry and drops it. */
async function startReceiver(): Promise<{ readonly url: string; stop(): void }> {
  const server = createServer((request, response) => {
    request.resume();
    request.once("end", () => response.end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Ours at least so many times Portkey's rate. */
const timesPortkey = (times: number, scenario: string) => ({
  text: `${scenario}: at least ${times} × Portkey's calls per second`,
  isMet: (median: Median) =>
    (median("signalbox", scenario, "calls") ?? 0) >=
    times * (median("portkey", scenario, "calls") ?? Infinity),
});

/** In µs. */
const MOST_FOR_A_FEATURE = 15;
const atMostMore = (name: string) => ({
  text: `${name}: at most ${MOST_FOR_A_FEATURE} µs more CPU time for a JSON call`,
  isMet: (median: Median) =>
    (median(name, MANY, "cpu") ?? Infinity) <= (median("signalbox", MANY, "cpu") ?? 0) + MOST_FOR_A_FEATURE,
});

const METRICS = loadMetrics("calls", "call");
const GENERATOR = {
  name: "generator",
  unit: "µs/call of the load generator",
  better: "lower",
  isDetail: true,
} as const;

export const workload: Workload = {
  name: "gateway",
  summary:
    "calls through the gateway, authentication on, log rows and bodies kept (and rows only), one core each",
  rounds: roundsOf(3),
  contenders: [
    contender("signalbox", (port) => startOurs(port, {})),
    contender("signalbox, rows only", (port) => startOurs(port, { keepsBodies: false })),
    contender(RULED, (port) => startOurs(port, { isLimited: true })),
    contender(TRACED, (port) => startOurs(port, { isTraced: true })),
    contender("nginx", startNginx),
    contender("portkey", startPortkey),
    contender("node:http + undici", startBare),
    contender("direct", startDirect),
  ],
  oursAt: (checkout) => contender("signalbox", (port) => startOurs(port, {}, checkout)),
  scenarios: [
    { name: ONE, metrics: METRICS },
    { name: MANY, metrics: [...METRICS, GENERATOR] },
    { name: TRICKLED, metrics: METRICS },
    { name: BURST, metrics: METRICS },
    {
      name: MEMORY,
      metrics: [
        { name: "first", unit: `MB after ${MEMORY_CALLS.toLocaleString("en-US")} calls`, better: "lower" },
        {
          name: "second",
          unit: `MB after ${(2 * MEMORY_CALLS).toLocaleString("en-US")} calls`,
          better: "lower",
        },
      ],
    },
  ],
  headlines: [
    {
      text: "added to a JSON call at the median, one connection, with its token, cost and log row",
      figure(median) {
        const [own, direct] = [median("signalbox", ONE, "p50"), median("direct", ONE, "p50")];
        return own === null || direct === null ? null : `${(own - direct).toFixed(2)} ms`;
      },
    },
    timesRival("the calls per second of Portkey's gateway, 32 connections", "portkey", MANY, "calls"),
    ownFigure("resident memory after 200,000 calls", MEMORY, "second", "MB"),
  ],
  goals: [
    {
      text: "load generator and provider are not the limit: direct calls at least 1.5 × the rate of any gateway",
      isMet: (median) =>
        ["signalbox", "nginx", "node:http + undici"].every(
          (name) => (median("direct", MANY, "calls") ?? 0) >= 1.5 * (median(name, MANY, "calls") ?? 0),
        ),
    },
    timesPortkey(9, MANY),
    timesPortkey(9, BURST),
    atMostMore(RULED),
    atMostMore(TRACED),
    {
      text: "a trickled stream costs less CPU than the bare undici relay, and Portkey's at least 2.6 times as much",
      isMet: (median) => {
        const own = median("signalbox", TRICKLED, "cpu") ?? Infinity;
        return (
          own < (median("node:http + undici", TRICKLED, "cpu") ?? 0) &&
          2.6 * own <= (median("portkey", TRICKLED, "cpu") ?? 0)
        );
      },
    },
    {
      text: "added latency at one connection below 1 ms (p50)",
      isMet: (median) =>
        (median("signalbox", ONE, "p50") ?? Infinity) - (median("direct", ONE, "p50") ?? 0) < 1,
    },
    {
      text: "CPU time of a JSON call at most 6.7 × nginx's",
      isMet: (median) =>
        (median("signalbox", MANY, "cpu") ?? Infinity) <= 6.7 * (median("nginx", MANY, "cpu") ?? 0),
    },
    {
      text: "resident memory at most 160 MB after 100,000 calls, and at most 10 % more after as many again",
      isMet: (median) => {
        const first = median("signalbox", MEMORY, "first") ?? Infinity;
        return first <= 160 && (median("signalbox", MEMORY, "second") ?? Infinity) <= first * 1.1;
      },
    },
  ],
};
