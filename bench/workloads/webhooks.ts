/**
 * Webhook intake: 4 KB GitHub-like bodies, signature verified, delivery id looked up, event stored, newest 100 kept, state set, and
 * everything synced to disk before the answer. The rival is the same agent of the public `agents` package on bare workerd.
 */
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";
import { startWorkerd } from "../rivals/workerd.ts";
import { percentile, runLoad } from "../support/load.ts";
import { startOnCore } from "../support/server-on-core.ts";
import type { Contender, RunningContender, Sample, Workload } from "../support/workload.ts";

const CLI = join(import.meta.dirname, "../../packages/signalbox/bin/signalbox.js");
const SECRET = "bench-secret";
const BODY_BYTES = 4096;
const CONNECTIONS = 64;
const LOAD_MS = 3000;
const WARM_ENTITIES = 1000;
/** Each makes a database; this many keep a round short on a slow disk. */
const MAX_NEW_ENTITIES = 3000;
const LIVE_EVENTS = 1000;

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

interface Template {
  readonly head: string;
  readonly tail: Buffer;
}

function templateOf(repository: string, secret = SECRET): Template {
  const body = Buffer.from(bodyOf(repository));
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const head =
    `POST /webhooks/github HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: GitHub-Hookshot/bench\r\naccept: */*\r\n` +
    `content-type: application/json\r\nx-github-event: push\r\nx-github-hook-id: 1\r\n` +
    `x-hub-signature-256: sha256=${signature}\r\ncontent-length: ${body.length}\r\n`;
  return { head, tail: body };
}

let deliveries = 0;

function requestOf({ head, tail }: Template): Buffer {
  deliveries += 1;
  return Buffer.concat([
    Buffer.from(`${head}x-github-delivery: bench-${process.pid}-${deliveries}\r\n\r\n`),
    tail,
  ]);
}

interface Target {
  readonly port: number;
  /** Query that lets a client in. */
  readonly clientQuery: string;
  cpuMs(): number | null;
  stop(): Promise<void>;
}

/** Time for both sides' compilers: a server runs for weeks, and the first seconds on one core are mostly theirs. */
const WARM_UP_MS = 8000;

async function measureOn(target: Target): Promise<RunningContender> {
  const warmUp = templateOf("bench/warm-up");
  await runLoad({
    port: target.port,
    connections: CONNECTIONS,
    durationMs: WARM_UP_MS,
    request: () => requestOf(warmUp),
  });
  const one = templateOf("bench/one");
  const refused = templateOf("bench/one", "not the secret");
  const warm = Array.from({ length: WARM_ENTITIES }, (_, i) => templateOf(`bench/warm-${i}`));
  const load = async (
    request: (sequence: number) => Buffer,
    options: { maxRequests?: number; status?: number } = {},
  ) => {
    const cpuBefore = target.cpuMs() ?? 0;
    const result = await runLoad({
      port: target.port,
      connections: CONNECTIONS,
      durationMs: LOAD_MS,
      request,
      ...(options.maxRequests === undefined ? {} : { maxRequests: options.maxRequests }),
      isExpected: (status) => status === (options.status ?? 200),
    });
    if (result.unexpected > 0) throw new Error(`${result.unexpected} unexpected answers`);
    const cpu = (((target.cpuMs() ?? 0) - cpuBefore) * 1000) / result.requests;
    return { events: result.perSecond, p50: result.p50Ms, p99: result.p99Ms, cpu };
  };
  const scenarios: Readonly<Record<string, (round: number) => Promise<Sample>>> = {
    [ONE]: () => load(() => requestOf(one)),
    async [WARM]() {
      const next = (sequence: number) => requestOf(warm[sequence % WARM_ENTITIES] ?? one);
      // Both sides put instances to sleep that had nothing to do for a while, so they are woken before each measurement.
      await runLoad({ ...SLOW, port: target.port, maxRequests: WARM_ENTITIES, request: next });
      return load(next);
    },
    [NEW]: (round) =>
      load((sequence) => requestOf(templateOf(`bench/new-${round}-${sequence}`)), {
        maxRequests: MAX_NEW_ENTITIES,
      }),
    [REFUSED]: () => load(() => requestOf(refused), { status: 401 }),
    [LIVE]: (round) => measureLive(target, templateOf(`bench/live-${round}`), `bench-live-${round}`),
  };
  return {
    measure: (scenario, round) => scenarios[scenario]?.(round) ?? Promise.resolve(null),
    cpuMs: () => target.cpuMs(),
    stop: () => target.stop(),
  };
}

const SLOW = { connections: CONNECTIONS, durationMs: 60_000 };

/** From the first byte of a webhook to the arrival of the state it caused, at a client that was connected before. */
async function measureLive(target: Target, template: Template, instance: string): Promise<Sample> {
  const socket = new WebSocket(
    `ws://127.0.0.1:${target.port}/agents/webhook-agent/${instance}?${target.clientQuery}`,
  );
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
    const answered = runLoad({
      port: target.port,
      connections: 1,
      durationMs: 5000,
      maxRequests: 1,
      request: () => requestOf(template),
    });
    await seen;
    latencies.push(performance.now() - startedAt);
    await answered;
  }
  socket.close();
  latencies.sort((a, b) => a - b);
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}

const signalbox: Contender = {
  name: "signalbox",
  async start() {
    const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-webhooks-"));
    const config = join(folder, "signalbox.config.json");
    writeFileSync(
      config,
      JSON.stringify({
        agents: { access: "public", newInstancesPerMinute: 1_000_000_000, maxActiveInstances: 1200 },
      }),
    );
    const server = await startOnCore(
      [
        process.execPath,
        CLI,
        "serve",
        "--json",
        "--port",
        "0",
        "--data-dir",
        join(folder, "data"),
        "--config",
        config,
      ],
      { env: { GITHUB_WEBHOOK_SECRET: SECRET, SIGNALBOX_LOG_LEVEL: "error" } },
    );
    const { url } = JSON.parse(server.firstLine) as { url: string };
    return measureOn({
      port: Number(new URL(url).port),
      clientQuery: "_pk=bench",
      cpuMs: () => server.cpuMs(),
      async stop() {
        await server.stop();
        rmSync(folder, { recursive: true, force: true });
      },
    });
  },
};

const workerd: Contender = {
  name: "workerd + agents 0.32.0",
  async start() {
    const server = await startWorkerd(SECRET);
    return measureOn({
      port: server.port,
      clientQuery: "_pk=bench",
      cpuMs: () => server.cpuMs(),
      stop: () => server.stop(),
    });
  },
};

const EVENTS = { name: "events", unit: "1/s", better: "higher" } as const;
const P50 = { name: "p50", unit: "ms", better: "lower" } as const;
const P99 = { name: "p99", unit: "ms", better: "lower" } as const;
const CPU = { name: "cpu", unit: "µs an event", better: "lower" } as const;

type Median = (contender: string, scenario: string, metric: string) => number | null;

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
  rounds: 5,
  contenders: [signalbox, workerd],
  scenarios: [
    ...[ONE, WARM, NEW, REFUSED].map((name) => ({ name, metrics: [EVENTS, P50, P99, CPU] })),
    { name: LIVE, metrics: [P50, P99] },
  ],
  goals: [
    atLeast(ONE, 5),
    atLeast(WARM, 5),
    atLeast(NEW, 10),
    {
      text: "refusing a bad signature is at least 2 times as fast as accepting",
      isMet: (median) =>
        (median(signalbox.name, REFUSED, "events") ?? 0) >=
        2 * (median(signalbox.name, ONE, "events") ?? Infinity),
    },
  ],
};
