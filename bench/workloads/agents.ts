/**
 * Agents: turns per second, first touches, broadcasts, latency of cold starts and wakes, memory; against the same class on the `agents`
 * package and bare workerd. Both sides have every write on disk before they answer, both run on one core, and both get the same frames and
 * requests. Instances fall asleep after ten seconds without work on both sides (workerd's own figure).
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startWorkerd } from "../rivals/workerd.ts";
import { encodeText, LeanSocket } from "../support/lean-socket.ts";
import { buildRequest, percentile, runLoad } from "../support/load.ts";
import { callMethods, callOnceEach } from "../support/method-calls.ts";
import { type ServerOnCore, startOnCore } from "../support/server-on-core.ts";
import type { Contender, Metric, RunningContender, Sample, Workload } from "../support/workload.ts";

const CLI = join(import.meta.dirname, "../../packages/signalbox/bin/signalbox.js");
const AGENTS = fileURLToPath(new URL("../support/counter-agent.ts", import.meta.url));

const CALLERS = 64;
const INSTANCES = 1000;
const LISTENERS = 1000;
const CALL_MS = 2000;
const ANNOUNCEMENTS = 30;
/** New instances per round; more would only fill the disk. */
const MAX_FIRST_TOUCHES = 3000;
const SEQUENTIAL_TOUCHES = 40;
const IDLE_MS = 10_000;
const IDLE_SOCKETS = 1000;
const ROUNDS = 3;

const READ_ONE = "one instance, 64 callers, read-only method";
const WRITE_ONE = "one instance, 64 callers, method with one write";
const READ_MANY = "1,000 warm instances, 64 callers, read-only method";
const WRITE_MANY = "1,000 warm instances, 64 callers, method with one write";
const FIRST_TOUCH = "first touches of new instances, 64 callers";
const BROADCAST = "state broadcast to 1,000 clients";
const LATENCY = "one caller, instances not in memory";
const MEMORY = "memory";

const CALL_METRICS: readonly Metric[] = [
  { name: "calls", unit: "1/s", better: "higher" },
  { name: "p50", unit: "ms", better: "lower" },
  { name: "p99", unit: "ms", better: "lower" },
  // What a busy machine disturbs least.
  { name: "CPU", unit: "µs a call", better: "lower" },
];

/** A server under test; one is kept for the whole run, and each memory figure gets a fresh one. */
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
            return broadcast(server.port);
          case LATENCY:
            // Twice the idle time: both sides look for idle instances at intervals.
            await sleep(Math.max(0, fellAsleepAt + IDLE_MS - performance.now()));
            return latency(
              server.port,
              round,
              sleepers.slice(round * SEQUENTIAL_TOUCHES, (round + 1) * SEQUENTIAL_TOUCHES),
            );
          case MEMORY:
            // Takes longer than everything else together and hardly varies: once is enough.
            return round === 0 ? memory(start) : null;
          default:
            return null;
        }
      };
      return {
        measure,
        cpuMs: () => server.cpuMs(),
        async stop() {
          for (const socket of [...one, ...many]) socket.close();
          await server.stop();
        },
      } satisfies RunningContender;
    },
  };
}

async function calls(server: AgentServer, sockets: readonly LeanSocket[], method: string): Promise<Sample> {
  // Brings those that sleep back into memory, and both sides' code up to speed.
  await callOnceEach({ sockets, callers: CALLERS, method });
  const cpuBefore = server.cpuMs();
  const { requests, perSecond, p50Ms, p99Ms } = await callMethods({
    sockets,
    callers: CALLERS,
    method,
    durationMs: CALL_MS,
  });
  return { calls: perSecond, p50: p50Ms, p99: p99Ms, ...cpuOf(server, cpuBefore, requests) };
}

async function firstTouches(server: AgentServer, round: number): Promise<Sample> {
  const cpuBefore = server.cpuMs();
  const { requests, perSecond, p50Ms, p99Ms, unexpected } = await runLoad({
    port: server.port,
    connections: CALLERS,
    durationMs: CALL_MS,
    maxRequests: MAX_FIRST_TOUCHES,
    request: (sequence) => buildRequest("POST", pathOf(`first-${round}-${sequence}`)),
  });
  if (unexpected > 0) throw new Error(`${unexpected} first touches failed`);
  return { touches: perSecond, p50: p50Ms, p99: p99Ms, ...cpuOf(server, cpuBefore, requests) };
}

function cpuOf(server: AgentServer, before: number | null, count: number): { CPU?: number } {
  const after = server.cpuMs();
  return before === null || after === null ? {} : { CPU: ((after - before) * 1000) / count };
}

/** One caller changes the state again and again, each time after every listener has seen the last change. */
async function broadcast(port: number): Promise<Sample> {
  const listeners = await openSockets(port, LISTENERS, () => "stage");
  const [caller] = await openSockets(port, 1, () => "stage");
  const latencies: number[] = [];
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
  for (const socket of [...listeners, ...(caller === undefined ? [] : [caller])]) socket.close();
  latencies.sort((a, b) => a - b);
  return { frames: (ANNOUNCEMENTS * LISTENERS) / seconds, p50: percentile(latencies, 0.5) };
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

/** Fresh processes: what a load left behind in a heap is not memory per instance. */
async function memory(start: () => Promise<AgentServer>): Promise<Sample> {
  const active = await start();
  await touchEach(active.port, ["warm-up"], "POST");
  const before = active.residentBytes();
  await runLoad({
    port: active.port,
    connections: 8,
    durationMs: 60_000,
    maxRequests: INSTANCES,
    request: (sequence) => buildRequest("POST", pathOf(`active-${sequence}`)),
  });
  // Again, quickly: the first of them may have fallen asleep while the last were created.
  await runLoad({
    port: active.port,
    connections: 8,
    durationMs: 60_000,
    maxRequests: INSTANCES,
    request: (sequence) => buildRequest("GET", pathOf(`active-${sequence}`)),
  });
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
  for (const name of names) {
    const { unexpected, p50Ms } = await runLoad({
      port,
      connections: 1,
      durationMs: 10_000,
      maxRequests: 1,
      request: () => buildRequest(method, pathOf(name)),
    });
    if (unexpected > 0) throw new Error(`${method} ${name} failed`);
    latencies.push(p50Ms);
  }
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

async function startSignalbox(): Promise<AgentServer> {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  const config = join(folder, "signalbox.config.json");
  writeFileSync(
    config,
    JSON.stringify({
      agents: {
        access: "public",
        newInstancesPerMinute: 1_000_000_000,
        modules: [AGENTS],
        idleTimeoutMs: IDLE_MS,
      },
    }),
  );
  const server = await startOnCore([
    process.execPath,
    CLI,
    "serve",
    "--json",
    "--port",
    "0",
    "--config",
    config,
    "--data-dir",
    join(folder, "data"),
  ]);
  return {
    ...server,
    port: Number(new URL((JSON.parse(server.firstLine) as { url: string }).url).port),
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const OURS = "signalbox";
const RIVAL = "workerd";

/** At least so many times the rival's figure. */
function atLeast(factor: number, scenario: string, metric: string, what: string) {
  return {
    text: `at least ${factor} × workerd's ${what}`,
    isMet: (median: (contender: string, scenario: string, metric: string) => number | null) =>
      (median(OURS, scenario, metric) ?? 0) >= factor * (median(RIVAL, scenario, metric) ?? Infinity),
  };
}

export const workload: Workload = {
  name: "agents",
  summary: "the same agent here and on bare workerd, durable before every answer, one core each",
  rounds: ROUNDS,
  contenders: [contender(OURS, startSignalbox), contender(RIVAL, startWorkerd)],
  scenarios: [
    { name: READ_ONE, metrics: CALL_METRICS },
    { name: WRITE_ONE, metrics: CALL_METRICS },
    { name: READ_MANY, metrics: CALL_METRICS },
    { name: WRITE_MANY, metrics: CALL_METRICS },
    {
      name: FIRST_TOUCH,
      metrics: [
        { name: "touches", unit: "1/s", better: "higher" },
        { name: "p50", unit: "ms", better: "lower" },
        { name: "p99", unit: "ms", better: "lower" },
        { name: "CPU", unit: "µs a touch", better: "lower" },
      ],
    },
    {
      name: BROADCAST,
      metrics: [
        { name: "frames", unit: "1/s", better: "higher" },
        { name: "p50", unit: "ms until the last client has it", better: "lower" },
      ],
    },
    {
      name: LATENCY,
      metrics: ["cold", "cold p99", "wake", "wake p99"].map((name) => ({
        name,
        unit: "ms",
        better: "lower",
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
  goals: [
    atLeast(4, WRITE_ONE, "calls", "durable writes per second on one instance at 64 callers"),
    atLeast(4, WRITE_MANY, "calls", "durable writes per second on 1,000 warm instances"),
    atLeast(8, FIRST_TOUCH, "touches", "rate of first touches of new instances"),
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
