/** The tags benchmark over HTTP: the scenarios, and a contender that needs nothing of a checkout but its program. */
import { meterCpu } from "./cpu-times.ts";
import { runLoad } from "./load.ts";
import { sized } from "./quick.ts";
import { buildRequest } from "./requests.ts";
import type { ServerOnCore } from "./server-on-core.ts";
import { startSignalbox } from "./signalbox.ts";
import type { TagData } from "./tag-data.ts";
import type { RunningContender, Sample } from "./workload.ts";

export const ROOT_TOKEN = "root-token-of-the-tags-benchmark";
const HEADERS = { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" };
const PATH = "/accounts/default/tags";
const BULK_ITEMS = 1000;
/** Different requests of a scenario, sent in turn: more than the cache of recently read resources holds. */
const REQUESTS = 10_000;

export const READ = "HTTP: read one resource, 32 connections";
export const WRITE = "HTTP: durable PUT, 64 connections";
export const LIST = "HTTP: page and total of three ANDs, 32 connections";

/** Null if the scenario is not one over HTTP. */
export async function measureOverHttp(
  server: ServerOnCore & { readonly port: number },
  scenario: string,
  data: TagData,
): Promise<Sample> {
  const [requests, connections] = requestsOf(scenario, data);
  if (requests.length === 0) return null;
  const cpu = meterCpu(server);
  const result = await runLoad({ port: server.port, connections, durationMs: sized(3000), requests });
  return {
    requests: result.perSecond,
    p50: result.p50Ms,
    p99: result.p99Ms,
    ...cpu(result.requests),
  };
}

/** Stores the resources through the bulk route and runs each scenario once as a warm-up. */
export async function startOverHttp(checkout: string, data: TagData): Promise<RunningContender> {
  const server = await startSignalbox({ checkout, env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN } });
  for (const items of batches(data)) {
    const response = await fetch(`${server.url}${PATH}/bulk`, {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ items }),
    });
    if (!response.ok) throw new Error(`bulk load: ${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  }
  for (const scenario of [READ, LIST, WRITE]) await measureOverHttp(server, scenario, data);
  return {
    measure: (scenario) => measureOverHttp(server, scenario, data),
    cpuTimes: server.cpuTimes,
    stop: () => server.stop(),
  };
}

function requestsOf(scenario: string, data: TagData): readonly [requests: Buffer[], connections: number] {
  const many = (make: () => Buffer) => Array.from({ length: REQUESTS }, make);
  switch (scenario) {
    case READ:
      return [
        many(() => {
          const { type, id } = data.randomName();
          return buildRequest("GET", `${PATH}?resource_type=${type}&resource_id=${id}`, HEADERS);
        }),
        32,
      ];
    case WRITE:
      return [many(() => buildRequest("PUT", PATH, HEADERS, JSON.stringify(putOf(data)))), 64];
    case LIST: {
      const query = "tag=env=prod&tag=region=region-0&tag=team=team-0&total=exact";
      return [[buildRequest("GET", `${PATH}/resources?${query}`, HEADERS)], 32];
    }
    default:
      return [[], 0];
  }
}

function putOf(data: TagData) {
  const { type, id } = data.randomName();
  return { resource_type: type, resource_id: id, tags: Object.fromEntries(data.tags()) };
}

function* batches(data: TagData) {
  let items: object[] = [];
  for (const { type, id, tags } of data.resources()) {
    items.push({ resource_type: type, resource_id: id, tags: Object.fromEntries(tags) });
    if (items.length < BULK_ITEMS) continue;
    yield items;
    items = [];
  }
  if (items.length > 0) yield items;
}
