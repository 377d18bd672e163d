/**
 * Webhook intake: GitHub-like bodies of 4 KB, signature verified, delivery id looked up, event stored, newest 100 kept, state set, and
 * everything synced to disk before the response. The rival is the same agent of the public `agents` package on bare workerd.
 */
import { createHmac } from "node:crypto";
import { WebSocket } from "ws";
import { startWorkerd } from "../rivals/workerd.ts";
import { meterCpu } from "../support/cpu-times.ts";
import { runLoad } from "../support/load.ts";
import { timeRequest } from "../support/node-load.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { buildRequest, SEQUENCE_MARKER, withSequence } from "../support/requests.ts";
import type { ServerOnCore } from "../support/server-on-core.ts";
import { startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { percentile } from "../support/statistics.ts";
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

const SECRET = "bench-secret";
const BODY_BYTES = 4096;
const CONNECTIONS = 64;
const LOAD_MS = sized(3000);
const WARM_ENTITIES = 1000;
/** Each creates a database, so more would make a round long on a slow disk. */
const MAX_NEW_ENTITIES = sized(3000);
/** Time for the compilers of both sides: a server runs for weeks. */
const WARM_UP_MS = sized(8000);
const LIVE_EVENTS = sized(1000);

const ONE = "one entity, 64 connections";
const WARM = "1,000 warm entities, 64 connections";
const NEW = "entities never seen before, 64 connections";
const REFUSED = "bad signature, 64 connections";
const LIVE = "webhook to WebSocket, one at a time";

/** A push event of about 4 KB, with the parts GitHub's have. */
function bodyOf(repository: string): string {
  const payload = {
    ref: "refs/heads/main",
    compare: `https://github.com/${repository}/compare/aaaaaaaaaaaa...bbbbbbbbbbbb`,
    repository: {
      id: 186853002,
      full_name: repository,
      private: false,
      html_url: `https://github.com/${repository}`,
    },
    pusher: { name: "octocat", email: "octocat@example.com" },
    sender: { login: "octocat", id: 21031067, type: "User" },
    head_commit: { id: "b".repeat(40), message: "Make the door open", timestamp: "2026-01-01T00:00:00Z" },
    commits: [] as object[],
    padding: "",
  };
  for (let i = 0; i < 8; i++) {
    payload.commits.push({
      id: String(i).repeat(40),
      message: `Commit ${i}: a message of ordinary length`,
      author: { name: "Mona Lisa", email: "mona@example.com" },
      added: ["src/door.ts"],
      modified: ["README.md", "package.json"],
    });
  }
  payload.padding = "x".repeat(Math.max(0, BODY_BYTES - JSON.stringify(payload).length));
  return JSON.stringify(payload);
}

/** A signed delivery; its id, which is not signed, differs each time the request is sent. */
function deliveryTo(repository: string, secret = SECRET): Buffer {
  const body = Buffer.from(bodyOf(repository));
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = {
    "user-agent": "GitHub-Hookshot/bench",
    accept: "*/*",
    "content-type": "application/json",
    "x-github-event": "push",
    "x-github-hook-id": "1",
    "x-hub-signature-256": `sha256=${signature}`,
    "x-github-delivery": `bench-${SEQUENCE_MARKER}`,
  };
  return buildRequest("POST", "/webhooks/github", headers, body);
}

interface Target extends ServerOnCore {
  readonly port: number;
}

async function measureOn(target: Target): Promise<RunningContender> {
  const { port } = target;
  const load = async (requests: readonly Buffer[], status = 200, maxRequests = 0): Promise<Sample> => {
    const cpu = meterCpu(target);
    const result = await runLoad({
      port,
      connections: CONNECTIONS,
      durationMs: LOAD_MS,
      requests,
      status,
      maxRequests,
    });
    const { perSecond, p50Ms, p99Ms } = result;
    return { events: perSecond, p50: p50Ms, p99: p99Ms, ...cpu(result.requests) };
  };
  const one = [deliveryTo("bench/one")];
  const refused = [deliveryTo("bench/one", "not the secret")];
  const warm = Array.from({ length: WARM_ENTITIES }, (_, i) => deliveryTo(`bench/warm-${i}`));
  const scenarios: Readonly<Record<string, (round: number) => Promise<Sample>>> = {
    [ONE]: () => load(one),
    async [WARM]() {
      // Both sides put instances to sleep after a while without events, so they are woken before each measurement.
      const options = { connections: CONNECTIONS, durationMs: 60_000, maxRequests: WARM_ENTITIES };
      await runLoad({ port, requests: warm, ...options });
      return load(warm);
    },
    [NEW]: (round) => {
      const requests = Array.from({ length: MAX_NEW_ENTITIES }, (_, i) =>
        deliveryTo(`bench/new-${round}-${i}`),
      );
      return load(requests, 200, MAX_NEW_ENTITIES);
    },
    [REFUSED]: () => load(refused, 401),
    [LIVE]: (round) => measureLive(port, deliveryTo(`bench/live-${round}`), `bench-live-${round}`),
  };
  const warmUp = [deliveryTo("bench/warm-up")];
  await runLoad({ port, connections: CONNECTIONS, durationMs: WARM_UP_MS, requests: warmUp });
  return {
    measure: (scenario, round) => scenarios[scenario]?.(round) ?? Promise.resolve(null),
    cpuTimes: target.cpuTimes,
    stop: () => target.stop(),
  };
}

/** From sending a webhook until a connected client receives the state that the webhook caused. */
async function measureLive(port: number, delivery: Buffer, instance: string): Promise<Sample> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/agents/webhook-agent/${instance}?_pk=bench`);
  let onCount: (count: number) => void = () => undefined;
  const isConnected = new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.on("message", (data: Buffer) => {
      const frame = JSON.parse(data.toString()) as { type: string; state?: { eventCount?: number } };
      if (frame.type !== "cf_agent_state") return;
      resolve();
      onCount(frame.state?.eventCount ?? 0);
    });
  });
  await isConnected;
  const latencies: number[] = [];
  for (let i = 1; i <= LIVE_EVENTS; i++) {
    const seen = new Promise<void>((resolve) => {
      onCount = (count) => {
        if (count >= i) resolve();
      };
    });
    const startedAt = performance.now();
    const answered = timeRequest(port, withSequence(delivery));
    await seen;
    latencies.push(performance.now() - startedAt);
    await answered;
  }
  socket.close();
  latencies.sort((a, b) => a - b);
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

const signalboxAt = (checkout: string): Contender => ({
  name: "signalbox",
  start: async () =>
    measureOn(
      await startSignalbox({
        checkout,
        // With the default of 1,000, a thousand warm entities and one more would evict each other.
        config: { agents: { access: "public", maxActiveInstances: 1200 } },
        env: { GITHUB_WEBHOOK_SECRET: SECRET, SIGNALBOX_LOG_LEVEL: "error" },
      }),
    ),
});

const signalbox = signalboxAt(THIS_CHECKOUT);

const workerd: Contender = {
  name: "workerd + agents 0.32.0",
  start: async () => measureOn(await startWorkerd(SECRET)),
};

const EVENTS = loadMetrics("events", "event");

const atLeast = (scenario: string, times: number) => ({
  text: `${scenario}: at least ${times} times the rival's events per second, p99 no worse`,
  isMet: (median: Median) =>
    (median(signalbox.name, scenario, "events") ?? 0) >=
      times * (median(workerd.name, scenario, "events") ?? Infinity) &&
    (median(signalbox.name, scenario, "p99") ?? Infinity) <= (median(workerd.name, scenario, "p99") ?? 0),
});

export const workload: Workload = {
  name: "webhooks",
  summary: "verified, stored and synced webhooks against the same agent on bare workerd, one core each",
  rounds: roundsOf(5),
  contenders: [signalbox, workerd],
  oursAt: signalboxAt,
  scenarios: [
    ...[ONE, WARM, NEW, REFUSED].map((name) => ({ name, metrics: EVENTS })),
    {
      name: LIVE,
      metrics: [
        { name: "p50", unit: "ms", better: "lower" },
        { name: "p99", unit: "ms", better: "lower", isDetail: true },
      ],
    },
  ],
  headlines: [
    timesRival(
      "the webhooks per second of the same agent on bare workerd, one entity",
      workerd.name,
      ONE,
      "events",
    ),
    ownFigure("from a webhook to the WebSocket of a client, at the median", LIVE, "p50", "ms"),
  ],
  goals: [
    atLeast(ONE, 5.5),
    atLeast(WARM, 5.5),
    atLeast(NEW, 12),
    {
      text: "refusing a bad signature is at least 2 times as fast as accepting",
      isMet: (median) =>
        (median(signalbox.name, REFUSED, "events") ?? 0) >=
        2 * (median(signalbox.name, ONE, "events") ?? Infinity),
    },
  ],
};
