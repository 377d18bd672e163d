/**
 * A server that has run for a month: three million calls, 100,000 instances, 100,000 deliveries, a million tagged resources. What people look at is
 * requested one after the other while `GET /healthz` shows whether anybody else had to wait. Building the data takes most of the time; `--quick` builds a
 * fiftieth, to try the workload.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DAYS, sendDeliveries, storeCallsIn } from "../support/growth-data.ts";
import {
  createGateways,
  growthRequests,
  measureRequest,
  REQUEST_METRICS,
} from "../support/growth-requests.ts";
import { isQuick } from "../support/quick.ts";
import { type RunningSignalbox, startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { storeTags } from "../support/store-tags.ts";
import { TagData } from "../support/tag-data.ts";
import { ROOT_TOKEN } from "../support/tag-server.ts";
import { type Contender, ownFigure, type Sample, type Workload } from "../support/workload.ts";

const SHARE = isQuick ? 1 / 50 : 1;
const CALLS = 3_000_000 * SHARE;
/** One delivery each. */
const INSTANCES = 100_000 * SHARE;
const RESOURCES = 1_000_000 * SHARE;

const REQUESTS = growthRequests(Math.ceil(1000 * SHARE));
const SECRET = "secret-of-the-growth-benchmark";
const START = "start with all data";
const SPACE = "space";

const signalbox: Contender = {
  name: "signalbox",
  async start() {
    const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-growth-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    const dataDir = join(folder, "data");
    mkdirSync(dataDir, { mode: 0o700 });
    await timed(`${CALLS} calls`, () => storeCallsIn(dataDir, CALLS));
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
    ...names.map((name) => ({ name, metrics: REQUEST_METRICS })),
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
