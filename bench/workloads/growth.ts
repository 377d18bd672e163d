/**
 * A server that has run for a month: three million calls, 100,000 instances, 100,000 deliveries, a million tagged resources. What people look at is
 * requested one after the other while `GET /healthz` shows whether anybody else had to wait. Building the data takes most of the time; `--quick` builds a
 * fiftieth, to try the workload.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { meterCpu, OTHERS, THREAD_PREFIX } from "../support/cpu-times.ts";
import { DAYS, GATEWAYS, sendDeliveries, storeCalls } from "../support/growth-data.ts";
import { timeRequest } from "../support/node-load.ts";
import { startProbe } from "../support/probe.ts";
import { isQuick } from "../support/quick.ts";
import { buildRequest } from "../support/requests.ts";
import { type RunningSignalbox, startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { percentile } from "../support/statistics.ts";
import { storeTags } from "../support/store-tags.ts";
import { TagData } from "../support/tag-data.ts";
import { ROOT_TOKEN } from "../support/tag-server.ts";
import { type Contender, type Metric, ownFigure, type Sample, type Workload } from "../support/workload.ts";

const SHARE = isQuick ? 1 / 50 : 1;
const CALLS = 3_000_000 * SHARE;
/** One delivery each. */
const INSTANCES = 100_000 * SHARE;
const RESOURCES = 1_000_000 * SHARE;

const SECRET = "secret-of-the-growth-benchmark";
const HEADERS = { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" };
const ACCOUNT = "/accounts/default";
const LOGS = `${ACCOUNT}/ai-gateway/gateways/default/logs`;
const ALL_LOGS = `${ACCOUNT}/ai-gateway/logs`;
const DELIVERIES = `${ACCOUNT}/webhooks/deliveries`;
const INSTANCE_LIST = `${ACCOUNT}/agents/webhook-agent/instances`;
const DAY_MS = 86_400_000;

const since = (days: number) => `start=${new Date(Date.now() - days * DAY_MS).toISOString()}`;
const usage = (days: number, group: string) => `${ACCOUNT}/ai-gateway/usage?${since(days)}&group_by=${group}`;
const filter = (key: string, value: string) =>
  `filters.key=${key}&filters.operator=eq&filters.value=${value}`;

/** What the dashboard, the command line and clients request. */
const REQUESTS: Readonly<Record<string, string>> = {
  "calls: first page of a gateway": LOGS,
  "calls: page 1,000 of a gateway": `${LOGS}?page=${Math.ceil(1000 * SHARE)}`,
  "calls: failed ones of a gateway": `${LOGS}?${filter("success", "false")}`,
  "calls: one model of a gateway": `${LOGS}?${filter("model", "model-3")}`,
  "calls: most expensive of a gateway": `${LOGS}?order_by=cost`,
  "calls: metadata search of a gateway": `${LOGS}?search=user-4711`,
  "calls: ranges of a gateway": `${LOGS}?meta_info=true`,
  "calls: first page of all gateways": ALL_LOGS,
  "calls: search without a match, all gateways": `${ALL_LOGS}?search=no-such-value`,
  "usage: 30 days by hour": usage(30, "hour"),
  "usage: 30 days by model": usage(30, "model"),
  "usage: 24 hours by user": usage(1, "user"),
  "usage: 30 days by token": usage(30, "token"),
  "usage: 30 days by user": usage(30, "user"),
  "deliveries: summary": `${DELIVERIES}/summary`,
  "deliveries: first page": DELIVERIES,
  "deliveries: failed ones": `${DELIVERIES}?status=failed`,
  "deliveries: one type": `${DELIVERIES}?type=alarm`,
  "instances: first page": INSTANCE_LIST,
  "instances: last active first": `${INSTANCE_LIST}?order=last_active`,
  "instances: search": `${INSTANCE_LIST}?search=device-99`,
  "instances: with problems": `${INSTANCE_LIST}?problem=any`,
  "tags: page and total of three ANDs": `${ACCOUNT}/tags/resources?tag=env=prod&tag=region=region-0&tag=team=team-0&total=exact`,
  "tags: keys with counts": `${ACCOUNT}/tags/keys?counts=true`,
  "audit log: first page": `${ACCOUNT}/audit_logs`,
};
const START = "start with all data";
const SPACE = "space";

const METRICS: readonly Metric[] = [
  { name: "main", unit: "ms of CPU time of the main thread", better: "lower" },
  { name: "cpu", unit: "ms of CPU time", better: "lower" },
  { name: "p50", unit: "ms", better: "lower" },
  { name: "slowest", unit: "ms", better: "lower", isDetail: true },
  { name: "healthz", unit: "ms at most", better: "lower" },
];

/** A request is repeated until one of these is reached; and again, for at most half of them, while the probe runs, which takes CPU time itself. */
const MAX_REPEATS = 15;
const MAX_REQUEST_MS = 2000;

const signalbox: Contender = {
  name: "signalbox",
  async start() {
    const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-growth-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    const dataDir = join(folder, "data");
    mkdirSync(dataDir, { mode: 0o700 });
    await timed(`${CALLS} calls`, () => storeCalls(dataDir, CALLS));
    await storeTags(join(dataDir, "signalbox.db"), new TagData(RESOURCES));
    let server = await startOn(dataDir);
    await createGateways(server.port);
    await timed(`${INSTANCES} instances and deliveries`, () =>
      sendDeliveries(server.port, SECRET, INSTANCES),
    );
    return {
      async measure(scenario) {
        if (scenario === SPACE) return measureSpace(dataDir);
        if (scenario === START) {
          await server.stop();
          const startedAt = performance.now();
          server = await startOn(dataDir);
          const ready = performance.now() - startedAt;
          return { ready, memory: (server.residentBytes() ?? 0) / 2 ** 20 };
        }
        return measureRequest(server, REQUESTS[scenario] ?? "");
      },
      cpuTimes: () => server.cpuTimes(),
      stop: () => server.stop(),
    };
  },
};

function startOn(dataDir: string): Promise<RunningSignalbox> {
  return startSignalbox({
    checkout: THIS_CHECKOUT,
    dataDir,
    config: {
      webhooks: { keepDeliveries: 100_000 },
      gateway: { logs: { maxAgeDays: Math.ceil(DAYS) + 1 } },
    },
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET, SIGNALBOX_LOG_LEVEL: "error" },
  });
}

async function createGateways(port: number): Promise<void> {
  const path = `${ACCOUNT}/ai-gateway/gateways`;
  for (const id of GATEWAYS.slice(1))
    await timeRequest(port, buildRequest("POST", path, HEADERS, JSON.stringify({ id })));
}

async function measureRequest(server: RunningSignalbox, path: string): Promise<Sample> {
  const request = buildRequest("GET", path, HEADERS);
  const cpu = meterCpu(server);
  const times = await repeatRequest(server.port, request, 1);
  const { cpu: all = 0, [`${THREAD_PREFIX}main`]: main = 0, [OTHERS]: others = 0 } = cpu(times.length);
  const probe = startProbe(server.port);
  times.push(...(await repeatRequest(server.port, request, 1 / 2)));
  const healthz = await probe.stop();
  times.sort((a, b) => a - b);
  const [p50, slowest] = [percentile(times, 0.5), times.at(-1) ?? 0];
  return { main: main / 1000, cpu: all / 1000, p50, slowest, healthz, [OTHERS]: others };
}

async function repeatRequest(port: number, request: Buffer, share: number): Promise<number[]> {
  const times: number[] = [];
  const endsAt = performance.now() + MAX_REQUEST_MS * share;
  do {
    times.push(await timeRequest(port, request));
  } while (times.length < MAX_REPEATS * share && performance.now() < endsAt);
  return times;
}

function measureSpace(dataDir: string): Sample {
  const MIB = 2 ** 20;
  const sizes = new Map<string, number>();
  for (const entry of readdirSync(dataDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const part = path.slice(dataDir.length + 1).split("/")[0] ?? "";
    sizes.set(part, (sizes.get(part) ?? 0) + statSync(path).size / MIB);
  }
  const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const [calls, agents] = [sizes.get("logs") ?? 0, sizes.get("agents") ?? 0];
  return { calls, agents, rest: all - calls - agents };
}

async function timed(what: string, work: () => Promise<void>): Promise<void> {
  const startedAt = performance.now();
  await work();
  console.error(`stored ${what} in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

const below = (text: string, scenarios: readonly string[], metric: string, ms: number) => ({
  text: `${text} under ${ms} ms`,
  isMet: (median: (contender: string, scenario: string, metric: string) => number | null) =>
    scenarios.every((name) => (median(signalbox.name, name, metric) ?? Infinity) < ms),
});
const names = Object.keys(REQUESTS);
const startingWith = (...starts: readonly string[]) =>
  names.filter((name) => starts.some((start) => name.startsWith(start)));

export const workload: Workload = {
  name: "growth",
  summary: `${CALLS.toLocaleString("en")} calls of ${DAYS} days, ${INSTANCES.toLocaleString("en")} instances and deliveries, ${RESOURCES.toLocaleString("en")} tagged resources`,
  rounds: isQuick ? 1 : 3,
  contenders: [signalbox],
  scenarios: [
    ...names.map((name) => ({ name, metrics: METRICS })),
    {
      name: START,
      metrics: [
        { name: "ready", unit: "ms", better: "lower" },
        { name: "memory", unit: "MiB", better: "lower" },
      ],
    },
    {
      name: SPACE,
      metrics: [
        { name: "calls", unit: "MiB", better: "lower" },
        { name: "agents", unit: "MiB", better: "lower" },
        { name: "rest", unit: "MiB", better: "lower" },
      ],
    },
  ],
  headlines: [
    ownFigure("usage of 30 days by user, over three million calls", "usage: 30 days by user", "p50", "ms"),
    ownFigure("start with a month of data", START, "ready", "ms"),
  ],
  goals: [
    below("usage of 30 days", startingWith("usage"), "p50", 200),
    below(
      "lists of deliveries and instances, on the main thread,",
      startingWith("deliveries", "instances"),
      "main",
      20,
    ),
    below("other requests wait", names, "healthz", 50),
  ],
};
