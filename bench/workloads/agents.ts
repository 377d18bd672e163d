/**
 * Agents: calls per second, first touches, broadcasts, latency of cold starts and wakes, memory; against the same class on the `agents`
 * package and bare workerd. Both sides have every write on disk before they answer, both run on one core, and both get the same frames and
 * requests. "Worker mode" is Signalbox with the rival's own program, unchanged. On both sides instances fall asleep after ten seconds without work, which is workerd's own value.
 */
import { randomUUID } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startWorkerd, WORKER_FILE } from "../rivals/workerd.ts";
import { meterCpu } from "../support/cpu-times.ts";
import { encodeText, LeanSocket } from "../support/lean-socket.ts";
import { runLoad } from "../support/load.ts";
import { callMethods, callOnceEach } from "../support/method-calls.ts";
import { timeRequest } from "../support/node-load.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { buildRequest } from "../support/requests.ts";
import type { ServerOnCore } from "../support/server-on-core.ts";
import { packageOf, startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { percentile } from "../support/statistics.ts";
import {
  type Contender,
  loadMetrics,
  type Median,
  type RunningContender,
  type Sample,
  timesRival,
  type Workload,
} from "../support/workload.ts";

const CALLERS = 64;
const INSTANCES = 1000;
const LISTENERS = 1000;
const CALL_MS = sized(2000);
const ANNOUNCEMENTS = 30;
/** New instances per round; more would fill the disk. */
const MAX_FIRST_TOUCHES = sized(3000);
const SEQUENTIAL_TOUCHES = 40;
const IDLE_MS = 10_000;
const IDLE_SOCKETS = 1000;
const ROUNDS = roundsOf(3);

const READ_ONE = "one instance, 64 callers, read-only method";
const WRITE_ONE = "one instance, 64 callers, method with one write";
const READ_MANY = "1,000 warm instances, 64 callers, read-only method";
const WRITE_MANY = "1,000 warm instances, 64 callers, method with one write";
const FIRST_TOUCH = "first touches of new instances, 64 callers";
const BROADCAST = "state broadcast to 1,000 clients";
const LATENCY = "one caller, instances not in memory";
const MEMORY = "memory";

const CALL_METRICS = loadMetrics("calls", "call");

/** A server under test. One runs during all rounds; each memory figure gets a new one. */
interface AgentServer extends ServerOnCore {
  readonly port: number;
}

const pathOf = (name: string) => `/agents/counter-agent/${name}`;

function contender(name: string, start: () => Promise<AgentServer>): Contender {
  return {
    name,
    async start() {
      const server = await start();
      const sleepers = Array.from({ length: ROUNDS * SEQUENTIAL_TOUCHES }, (_, i) => `sleeper-${i}`);
      await touchEach(server.port, sleepers, "POST");
      const fellAsleepAt = performance.now() + IDLE_MS;
      const one = await openSockets(server.port, CALLERS, () => "one");
      const many = await openSockets(server.port, INSTANCES, (i) => `many-${i}`);
      const measure = async (scenario: string, round: number): Promise<Sample> => {
        switch (scenario) {
          case READ_ONE:
            return calls(server, one, "get");
          case WRITE_ONE:
            return calls(server, one, "increment");
          case READ_MANY:
            return calls(server, many, "get");
          case WRITE_MANY:
            return calls(server, many, "increment");
          case FIRST_TOUCH:
            return firstTouches(server, round);
          case BROADCAST:
            return broadcast(server);
          case LATENCY:
            // Twice the idle time: both sides search for idle instances at intervals.
            await sleep(Math.max(0, fellAsleepAt + IDLE_MS - performance.now()));
            return latency(
              server.port,
              round,
              sleepers.slice(round * SEQUENTIAL_TOUCHES, (round + 1) * SEQUENTIAL_TOUCHES),
            );
          case MEMORY:
            // Takes long and hardly varies, so it is measured once.
            return round === 0 ? memory(start) : null;
          default:
            return null;
        }
      };
      return {
        measure,
        cpuTimes: server.cpuTimes,
        async stop() {
          for (const socket of [...one, ...many]) socket.close();
          await server.stop();
        },
      } satisfies RunningContender;
    },
  };
}

async function calls(server: AgentServer, sockets: readonly LeanSocket[], method: string): Promise<Sample> {
  // Wakes the instances and warms both sides' compilers.
  await callOnceEach({ sockets, callers: CALLERS, method });
  const cpu = meterCpu(server);
  const { requests, perSecond, p50Ms, p99Ms } = await callMethods({
    sockets,
    callers: CALLERS,
    method,
    durationMs: CALL_MS,
  });
  return { calls: perSecond, p50: p50Ms, p99: p99Ms, ...cpu(requests) };
}

async function firstTouches(server: AgentServer, round: number): Promise<Sample> {
  const options = { connections: CALLERS, durationMs: CALL_MS, maxRequests: MAX_FIRST_TOUCHES };
  const touches = requestsTo("POST", `first-${round}`, MAX_FIRST_TOUCHES);
  const cpu = meterCpu(server);
  const { requests, perSecond, p50Ms, p99Ms } = await runLoad({
    port: server.port,
    requests: touches,
    ...options,
  });
  return { touches: perSecond, p50: p50Ms, p99: p99Ms, ...cpu(requests) };
}

function requestsTo(method: string, prefix: string, count: number): readonly Buffer[] {
  return Array.from({ length: count }, (_, i) => buildRequest(method, pathOf(`${prefix}-${i}`)));
}

/** One caller changes the state; each change begins when every listener has received the last one. */
async function broadcast(server: AgentServer): Promise<Sample> {
  const { port } = server;
  const listeners = await openSockets(port, LISTENERS, () => "stage");
  const [caller] = await openSockets(port, 1, () => "stage");
  const latencies: number[] = [];
  const cpu = meterCpu(server);
  const startedAt = performance.now();
  for (let i = 0; i < ANNOUNCEMENTS; i++) {
    const text = `announcement ${i} at ${startedAt}`;
    const sentAt = performance.now();
    await new Promise<void>((resolve, reject) => {
      let missing = LISTENERS;
      for (const listener of listeners) {
        listener.onEnd = (why) => reject(new Error(why));
        listener.onText = (frame) => {
          if (!frame.includes(text)) return;
          missing -= 1;
          if (missing === 0) resolve();
        };
      }
      caller?.send(
        encodeText(JSON.stringify({ type: "rpc", id: String(i), method: "announce", args: [text] })),
      );
    });
    latencies.push(performance.now() - sentAt);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const frames = ANNOUNCEMENTS * LISTENERS;
  const used = cpu(frames);
  for (const socket of [...listeners, ...(caller === undefined ? [] : [caller])]) socket.close();
  latencies.sort((a, b) => a - b);
  return { frames: frames / seconds, p50: percentile(latencies, 0.5), ...used };
}

async function latency(port: number, round: number, sleepers: readonly string[]): Promise<Sample> {
  const fresh = Array.from({ length: SEQUENTIAL_TOUCHES }, (_, i) => `cold-${round}-${i}`);
  const cold = await touchEach(port, fresh, "POST");
  const wake = await touchEach(port, sleepers, "GET");
  return {
    cold: percentile(cold, 0.5),
    "cold p99": percentile(cold, 0.99),
    wake: percentile(wake, 0.5),
    "wake p99": percentile(wake, 0.99),
  };
}

/** On new processes: the heap that an earlier load left behind is not memory per instance. */
async function memory(start: () => Promise<AgentServer>): Promise<Sample> {
  const active = await start();
  await touchEach(active.port, ["warm-up"], "POST");
  const before = active.residentBytes();
  const options = { port: active.port, connections: 8, durationMs: 60_000, maxRequests: INSTANCES };
  await runLoad({ ...options, requests: requestsTo("POST", "active", INSTANCES) });
  // Again: the first instances may have fallen asleep while the last ones were created.
  await runLoad({ ...options, requests: requestsTo("GET", "active", INSTANCES) });
  const after = active.residentBytes();
  await active.stop();

  const idle = await start();
  await touchEach(idle.port, ["warm-up"], "POST");
  const withoutSockets = idle.residentBytes();
  const sockets = await openSockets(idle.port, IDLE_SOCKETS, () => "warm-up");
  await sleep(500);
  const withSockets = idle.residentBytes();
  for (const socket of sockets) socket.close();
  await idle.stop();
  if (before === null || after === null || withoutSockets === null || withSockets === null) return null;
  return {
    "process with 1,000 active instances": after / 1e6,
    "per active instance": (after - before) / INSTANCES / 1e3,
    "per idle socket": (withSockets - withoutSockets) / IDLE_SOCKETS / 1e3,
  };
}

/** One request after the other; latencies in ascending order. */
async function touchEach(port: number, names: readonly string[], method: string): Promise<number[]> {
  const latencies: number[] = [];
  for (const name of names) latencies.push(await timeRequest(port, buildRequest(method, pathOf(name))));
  return latencies.sort((a, b) => a - b);
}

async function openSockets(
  port: number,
  count: number,
  nameOf: (i: number) => string,
): Promise<LeanSocket[]> {
  const sockets: LeanSocket[] = [];
  // A few at a time: the accept backlog is bounded.
  while (sockets.length < count) {
    const batch = Array.from({ length: Math.min(32, count - sockets.length) }, (_, i) =>
      LeanSocket.open(port, `${pathOf(nameOf(sockets.length + i))}?_pk=${randomUUID()}`),
    );
    sockets.push(...(await Promise.all(batch)));
  }
  return sockets;
}

/** The agent is copied beside a link to the checkout's package, so that it runs on that checkout's `Agent` class. */
async function startOurs(checkout: string): Promise<AgentServer> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-agent-"));
  const module = join(folder, "counter-agent.ts");
  cpSync(join(import.meta.dirname, "../support/counter-agent.ts"), module);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(packageOf(checkout), join(folder, "node_modules/signalbox"));
  const agents = { access: "public", modules: [module], idleTimeoutMs: IDLE_MS };
  const server = await startSignalbox({ checkout, config: { agents } });
  return {
    ...server,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The rival's program as it is, with its packages. */
function startWorkerMode(checkout: string): Promise<AgentServer> {
  const agents = { access: "worker", worker: { entry: WORKER_FILE }, idleTimeoutMs: IDLE_MS };
  return startSignalbox({ checkout, config: { agents } });
}

const OURS = "signalbox";
const WORKER_MODE = "worker mode";
const RIVAL = "workerd";

function atLeast(factor: number, scenario: string, metric: string, what: string, ours = OURS) {
  return {
    text: `${ours === OURS ? "" : `${ours}: `}at least ${factor} × workerd's ${what}`,
    isMet: (median: Median) =>
      (median(ours, scenario, metric) ?? 0) >= factor * (median(RIVAL, scenario, metric) ?? Infinity),
  };
}

export const workload: Workload = {
  name: "agents",
  summary: "the same agent here and on bare workerd, durable before every answer, one core each",
  rounds: ROUNDS,
  contenders: [
    contender(OURS, () => startOurs(THIS_CHECKOUT)),
    contender(RIVAL, startWorkerd),
    contender(WORKER_MODE, () => startWorkerMode(THIS_CHECKOUT)),
  ],
  oursAt: (checkout) => contender(OURS, () => startOurs(checkout)),
  scenarios: [
    { name: READ_ONE, metrics: CALL_METRICS },
    { name: WRITE_ONE, metrics: CALL_METRICS },
    { name: READ_MANY, metrics: CALL_METRICS },
    { name: WRITE_MANY, metrics: CALL_METRICS },
    { name: FIRST_TOUCH, metrics: loadMetrics("touches", "touch") },
    {
      name: BROADCAST,
      metrics: [
        { name: "cpu", unit: "µs/frame", better: "lower" },
        { name: "frames", unit: "1/s", better: "higher" },
        { name: "p50", unit: "ms until the last client has it", better: "lower", isDetail: true },
      ],
    },
    {
      name: LATENCY,
      metrics: ["cold", "cold p99", "wake", "wake p99"].map((name) => ({
        name,
        unit: "ms",
        better: "lower" as const,
        isDetail: name.endsWith("p99"),
      })),
    },
    {
      name: MEMORY,
      metrics: [
        { name: "process with 1,000 active instances", unit: "MB", better: "lower" },
        { name: "per active instance", unit: "KB", better: "lower" },
        { name: "per idle socket", unit: "KB", better: "lower" },
      ],
    },
  ],
  headlines: [
    timesRival(
      "the durable writes of the same agent on bare workerd, one instance",
      RIVAL,
      WRITE_ONE,
      "calls",
    ),
    timesRival("the same with 1,000 instances", RIVAL, WRITE_MANY, "calls"),
    timesRival(
      "bare workerd's durable writes with its own program, one instance",
      RIVAL,
      WRITE_ONE,
      "calls",
      WORKER_MODE,
    ),
    timesRival("the same with 1,000 instances and its own program", RIVAL, WRITE_MANY, "calls", WORKER_MODE),
  ],
  goals: [
    atLeast(5.5, WRITE_ONE, "calls", "durable writes per second on one instance at 64 callers"),
    atLeast(4.5, WRITE_MANY, "calls", "durable writes per second on 1,000 warm instances"),
    atLeast(9, FIRST_TOUCH, "touches", "rate of first touches of new instances"),
    atLeast(2.5, WRITE_ONE, "calls", "durable writes per second on one instance", WORKER_MODE),
    atLeast(2.5, WRITE_MANY, "calls", "durable writes per second on 1,000 warm instances", WORKER_MODE),
    atLeast(4, FIRST_TOUCH, "touches", "rate of first touches of new instances", WORKER_MODE),
    {
      text: `${WORKER_MODE}: below half of workerd's memory at 1,000 active instances`,
      isMet: (median) =>
        (median(WORKER_MODE, MEMORY, "process with 1,000 active instances") ?? Infinity) * 2 <
        (median(RIVAL, MEMORY, "process with 1,000 active instances") ?? 0),
    },
    {
      text: "an instance wakes in under 10 ms",
      isMet: (median) => (median(OURS, LATENCY, "wake") ?? Infinity) < 10,
    },
    {
      text: "under 60 KB per idle socket",
      isMet: (median) => (median(OURS, MEMORY, "per idle socket") ?? Infinity) < 60,
    },
    {
      text: "a third of workerd's memory at 1,000 active instances",
      isMet: (median) =>
        (median(OURS, MEMORY, "process with 1,000 active instances") ?? Infinity) * 3 <=
        (median(RIVAL, MEMORY, "process with 1,000 active instances") ?? 0),
    },
  ],
};
