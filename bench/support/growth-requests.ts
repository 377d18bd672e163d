/** What the dashboard, the command line and clients request of a server with much data, and how long each takes. */
import { meterCpu, OTHERS, THREAD_PREFIX } from "./cpu-times.ts";
import { GATEWAYS } from "./growth-data.ts";
import { timeRequest } from "./node-load.ts";
import { startProbe } from "./probe.ts";
import { buildRequest } from "./requests.ts";
import type { RunningSignalbox } from "./signalbox.ts";
import { percentile } from "./statistics.ts";
import { ROOT_TOKEN } from "./tag-server.ts";
import type { Metric, Sample } from "./workload.ts";

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

/** By name of the scenario. `deepPage`: the number of a page in the middle of the calls of a gateway. */
export function growthRequests(deepPage: number): Readonly<Record<string, string>> {
  return {
    "calls: first page of a gateway": LOGS,
    [`calls: page ${deepPage.toLocaleString("en")} of a gateway`]: `${LOGS}?page=${deepPage}`,
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
}

export const REQUEST_METRICS: readonly Metric[] = [
  { name: "main", unit: "ms of CPU time of the main thread", better: "lower" },
  { name: "cpu", unit: "ms of CPU time", better: "lower" },
  { name: "p50", unit: "ms", better: "lower" },
  { name: "slowest", unit: "ms", better: "lower", isDetail: true },
  { name: "healthz", unit: "ms at most", better: "lower" },
];

/** A request is repeated until one of these is reached; and again, for at most half of them, while the probe runs, which takes CPU time itself. */
const MAX_REPEATS = 15;
const MAX_REQUEST_MS = 2000;

export async function createGateways(port: number): Promise<void> {
  const path = `${ACCOUNT}/ai-gateway/gateways`;
  for (const id of GATEWAYS.slice(1))
    await timeRequest(port, buildRequest("POST", path, HEADERS, JSON.stringify({ id })));
}

export async function measureRequest(server: RunningSignalbox, path: string): Promise<Sample> {
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
