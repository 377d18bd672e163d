/**
 * Routes of webhooks: 1,000 deliveries a second to three routes (an agent and two URLs), each stored and synced before its sender is answered; and what a route
 * to one agent costs against a source without routes. The receiver runs beside the load generator. No other program that can be run at home does both.
 */
import { createHmac } from "node:crypto";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { meterCpu } from "../support/cpu-times.ts";
import { runLoad } from "../support/load.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { buildRequest, SEQUENCE_MARKER } from "../support/requests.ts";
import { startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { percentile } from "../support/statistics.ts";
import {
  type Contender,
  loadMetrics,
  ownFigure,
  type RunningContender,
  type Sample,
  type Workload,
} from "../support/workload.ts";

const SECRET = "bench-secret";
const BODY_BYTES = 2048;
const CONNECTIONS = 64;
const LOAD_MS = sized(3000);
const WARM_UP_MS = sized(5000);
const FANOUT_MS = sized(10_000);
const PER_SECOND = 1000;
const TICK_MS = 10;
const ENTITIES = 200;

const PLAIN = "one agent, no routes, 64 connections";
const ROUTED = "one agent by a route, 64 connections";
const FANOUT = "1,000 deliveries/s to an agent and two URLs";

function bodyOf(entity: string): Buffer {
  const payload = { repository: { full_name: entity }, ref: "refs/heads/main", padding: "" };
  payload.padding = "x".repeat(BODY_BYTES - JSON.stringify(payload).length);
  return Buffer.from(JSON.stringify(payload));
}

function headersOf(body: Buffer, id: string): Record<string, string> {
  return {
    "content-type": "application/json",
    "x-github-event": "push",
    "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
    "x-github-delivery": id,
  };
}

/** Counts requests, and says when the first of each delivery arrived at each path. */
function startReceiver() {
  let onArrival: (id: string) => void = () => undefined;
  const server = createServer((incoming, response) => {
    onArrival(String(incoming.headers["x-github-delivery"]));
    incoming.resume();
    response.end();
  });
  return new Promise<{
    readonly url: string;
    listen(next: (id: string) => void): void;
    close(): void;
  }>((resolve) => {
    server.listen(0, "127.0.0.1", () =>
      resolve({
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        listen: (next) => (onArrival = next),
        close: () => {
          server.closeAllConnections();
          server.close();
        },
      }),
    );
  });
}

async function start(checkout: string): Promise<RunningContender> {
  const receiver = await startReceiver();
  const main = { to: { agent: "webhook-agent" } };
  const target = await startSignalbox({
    checkout,
    config: {
      agents: { maxActiveInstances: 1200 },
      outgoing: { allowPrivateHosts: true },
      webhooks: {
        sources: {
          routed: { scheme: "github", routes: [{ name: "main", ...main }] },
          three: {
            scheme: "github",
            routes: [
              { name: "agent", ...main },
              { name: "first", to: { url: `${receiver.url}/first` }, rate: { concurrent: 64 } },
              { name: "second", to: { url: `${receiver.url}/second` }, rate: { concurrent: 64 } },
            ],
          },
        },
      },
    },
    env: {
      GITHUB_WEBHOOK_SECRET: SECRET,
      ROUTED_WEBHOOK_SECRET: SECRET,
      THREE_WEBHOOK_SECRET: SECRET,
      SIGNALBOX_LOG_LEVEL: "error",
    },
  });
  const { port } = target;
  const requestsOf = (source: string) =>
    Array.from({ length: ENTITIES }, (_, n) => {
      const body = bodyOf(`bench/${source}-${n}`);
      return buildRequest("POST", `/webhooks/${source}`, headersOf(body, `bench-${SEQUENCE_MARKER}`), body);
    });
  const plain = requestsOf("github");
  const routed = requestsOf("routed");
  const load = async (requests: readonly Buffer[]): Promise<Sample> => {
    const cpu = meterCpu(target);
    const options = { port, connections: CONNECTIONS, durationMs: LOAD_MS, requests, status: 200 };
    const result = await runLoad(options);
    const { perSecond, p50Ms, p99Ms } = result;
    return { events: perSecond, p50: p50Ms, p99: p99Ms, ...cpu(result.requests) };
  };
  const fanOut = async (round: number, durationMs: number): Promise<Sample> => {
    const sentAt = new Map<string, number>();
    const latencies: number[] = [];
    receiver.listen((id) => {
      const begun = sentAt.get(id);
      if (begun !== undefined) latencies.push(performance.now() - begun);
    });
    const cpu = meterCpu(target);
    const total = Math.round((durationMs / 1000) * PER_SECOND);
    await sendEvenly(port, total, (n) => {
      const id = `fan-${round}-${process.pid}-${n}`;
      sentAt.set(id, performance.now());
      return { id, body: bodyOf(`bench/three-${n % ENTITIES}`) };
    });
    while (latencies.length < 2 * total) await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    latencies.sort((a, b) => a - b);
    return {
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
      memory: (target.residentBytes() ?? 0) / 1e6,
      ...cpu(total),
    };
  };
  for (const requests of [plain, routed])
    await runLoad({ port, connections: CONNECTIONS, durationMs: WARM_UP_MS, requests });
  await fanOut(-1, WARM_UP_MS);
  return {
    measure: (scenario, round) => {
      if (scenario === PLAIN) return load(plain);
      return scenario === ROUTED ? load(routed) : fanOut(round, FANOUT_MS);
    },
    cpuTimes: target.cpuTimes,
    async stop() {
      await target.stop();
      receiver.close();
    },
  };
}

/** Sends at the rate, whatever the server does. Resolves when all are answered 202. */
function sendEvenly(
  port: number,
  total: number,
  next: (n: number) => { readonly id: string; readonly body: Buffer },
): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  let sent = 0;
  let answered = 0;
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      const due = Math.min(total, Math.round(((performance.now() - begun) / 1000) * PER_SECOND));
      for (; sent < due; sent++) {
        const { id, body } = next(sent);
        const outgoing = request(
          {
            port,
            host: "127.0.0.1",
            method: "POST",
            path: "/webhooks/three",
            agent,
            headers: headersOf(body, id),
          },
          (response) => {
            response.resume();
            if (response.statusCode !== 202) return fail(new Error(`answered ${response.statusCode}`));
            answered += 1;
            if (answered === total) end();
          },
        );
        outgoing.once("error", fail);
        outgoing.end(body);
      }
    }, TICK_MS);
    const end = () => {
      clearInterval(timer);
      agent.destroy();
      resolve();
    };
    const fail = (error: Error) => {
      clearInterval(timer);
      agent.destroy();
      reject(error);
    };
  });
}

const signalboxAt = (checkout: string): Contender => ({ name: "signalbox", start: () => start(checkout) });
const signalbox = signalboxAt(THIS_CHECKOUT);

export const workload: Workload = {
  name: "webhook-routes",
  summary: "deliveries to several routes, stored and synced before the answer, and the cost of one route",
  rounds: roundsOf(5),
  contenders: [signalbox],
  oursAt: signalboxAt,
  scenarios: [
    ...[PLAIN, ROUTED].map((name) => ({ name, metrics: loadMetrics("events", "event") })),
    {
      name: FANOUT,
      metrics: [
        { name: "p50", unit: "ms", better: "lower" },
        { name: "p99", unit: "ms", better: "lower" },
        { name: "cpu", unit: "µs/delivery", better: "lower" },
        { name: "memory", unit: "MB", better: "lower" },
      ],
    },
  ],
  headlines: [
    ownFigure(
      "from a delivery to the first byte at a URL, at the median, at 1,000 a second",
      FANOUT,
      "p50",
      "ms",
    ),
  ],
  goals: [
    {
      text: "a route to one agent costs at most 5 % more than none",
      isMet: (median) =>
        (median(signalbox.name, ROUTED, "cpu") ?? Infinity) <=
        1.05 * (median(signalbox.name, PLAIN, "cpu") ?? 0),
    },
  ],
};
