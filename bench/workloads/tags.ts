/**
 * A million tagged resources of one account: first page and exact total of every shape of filter, against plain tables on the same
 * SQLite; and over HTTP, reads of one resource and durable writes from concurrent clients.
 *
 * `SIGNALBOX_BENCH_RESOURCES` sets another number of resources.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseTagFilters, type TagFilter } from "@signalbox/protocol";
import { systemClock } from "../../packages/signalbox/src/core/clock.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { AccountNumbers } from "../../packages/signalbox/src/tags/store/account-numbers.ts";
import { ResourceCache } from "../../packages/signalbox/src/tags/store/resource-cache.ts";
import { resourceText } from "../../packages/signalbox/src/tags/show-resource.ts";
import { TagReader } from "../../packages/signalbox/src/tags/store/tag-reader.ts";
import { type Condition, jsonCondition, TagTables, textCondition } from "../rivals/tag-tables.ts";
import { cliOf, THIS_CHECKOUT } from "../support/checkout.ts";
import { buildRequest, percentile, runLoad } from "../support/load.ts";
import { type ServerOnCore, startOnCore } from "../support/server-on-core.ts";
import { TagData } from "../support/tag-data.ts";
import type { Contender, Metric, RunningContender, Sample, Workload } from "../support/workload.ts";

const BARE = join(import.meta.dirname, "../rivals/bare-http.ts");
const ROOT_TOKEN = "root-token-of-the-tags-benchmark";
const SIZE = Number(process.env["SIGNALBOX_BENCH_RESOURCES"] ?? 1_000_000);
const ACCOUNT = "default";
const PAGE = 100;
/** A scenario repeats its query until one of these is reached. */
const MAX_REPEATS = 15;
const MAX_QUERY_MS = 400;

interface Shape {
  readonly filters: readonly string[];
  /** Where the page starts, as a share of all resources. */
  readonly depth?: number;
}

const tenOf = (key: string, first: number, value: (i: number) => string) =>
  `${key}=${Array.from({ length: 10 }, (_, i) => value(first + i)).join(",")}`;

const SHAPES: Readonly<Record<string, Shape>> = {
  "one selective value": { filters: ["owner=user-1500@example.com"] },
  "three broad ANDs": { filters: ["env=prod", "region=region-0", "team=team-0"] },
  "key absent": { filters: ["!archived"] },
  "value excluded": { filters: ["region!=region-0"] },
  "three exclusions": { filters: ["env!=prod", "!archived", "region!=region-0,region-1"] },
  "OR of ten rare values": { filters: [tenOf("owner", 400, (i) => `user-${i}@example.com`)] },
  "OR of ten broad values": { filters: [tenOf("region", 0, (i) => `region-${i}`)] },
  "AND, OR and NOT": { filters: ["env=prod", tenOf("team", 0, (i) => `team-${i}`), "!tier"] },
  "AND with an empty result": { filters: ["env=prod", "archived"] },
  "key only": { filters: ["owner"] },
  "deep page of three ANDs": { filters: ["env=prod", "region=region-0", "team=team-0"], depth: 0.9 },
};
const READ = "HTTP: read one resource, 32 connections";
const WRITE = "HTTP: durable PUT, 64 connections";
const SPACE = "space";

const QUERY_METRICS: readonly Metric[] = [
  { name: "page", unit: "ms", better: "lower" },
  { name: "total", unit: "ms", better: "lower" },
];

const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-tags-"));

/** Medians of the first page and the exact total, in milliseconds. */
async function timeQuery(
  page: () => unknown,
  total: () => unknown,
): Promise<{ page: number; total: number }> {
  return { page: await medianTime(page), total: await medianTime(total) };
}

async function medianTime(work: () => unknown): Promise<number> {
  const times: number[] = [];
  const endsAt = performance.now() + MAX_QUERY_MS;
  do {
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  } while (times.length < MAX_REPEATS && performance.now() < endsAt);
  return percentile(
    times.sort((a, b) => a - b),
    0.5,
  );
}

const signalboxAt = (checkout: string): Contender => ({
  name: "signalbox",
  async start() {
    const dataDir = mkdtempSync(join(folder, "signalbox-"));
    const path = join(dataDir, "signalbox.db");
    const data = new TagData(SIZE);
    await load(path, data, checkout);
    const server = await startOnCore(
      [process.execPath, cliOf(checkout), "serve", "--json", "--port", "0", "--data-dir", dataDir],
      { env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN } },
    );
    const port = Number(new URL((JSON.parse(server.firstLine) as { url: string }).url).port);
    if (checkout !== THIS_CHECKOUT) return onlyOverHttp(server, port, data);
    const database = await SqliteDatabase.open(path, rethrow);
    const reader = new TagReader(database, new AccountNumbers(database), new ResourceCache(), resourceText);
    return {
      async measure(scenario) {
        if (scenario === READ) return readOne(port, data);
        if (scenario === WRITE) return writeMany(port, data);
        if (scenario === SPACE) {
          return { database: statSync(path).size / 2 ** 20, memory: (server.residentBytes() ?? 0) / 2 ** 20 };
        }
        const shape = shapeOf(scenario);
        const query = { filters: shape.filters, isCaseInsensitive: false, types: [], ids: [], name: null };
        return timeQuery(
          () => reader.list(ACCOUNT, query, shape.after, PAGE),
          () => reader.total(ACCOUNT, query),
        );
      },
      async stop() {
        await database.close();
        await server.stop();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },
});

/** Queries are timed in this process, which runs this checkout's code only. */
function onlyOverHttp(server: ServerOnCore, port: number, data: TagData): RunningContender {
  return {
    async measure(scenario) {
      if (scenario === READ) return readOne(port, data);
      return scenario === WRITE ? writeMany(port, data) : null;
    },
    stop: () => server.stop(),
  };
}

/** With the checkout's own code: another version's server may not read this one's tables. */
async function load(path: string, data: TagData, checkout: string): Promise<void> {
  const startedAt = performance.now();
  const from = async <T>(file: string) => (await import(join(checkout, "packages/signalbox/src", file))) as T;
  const { SqliteDatabase } = await from<
    typeof import("../../packages/signalbox/src/database/sqlite/sqlite-database.ts")
  >("database/sqlite/sqlite-database.ts");
  const { migrate } =
    await from<typeof import("../../packages/signalbox/src/database/migrate.ts")>("database/migrate.ts");
  const { TagWriter } =
    await from<typeof import("../../packages/signalbox/src/tags/store/tag-writer.ts")>(
      "tags/store/tag-writer.ts",
    );
  const { AccountNumbers } = await from<
    typeof import("../../packages/signalbox/src/tags/store/account-numbers.ts")
  >("tags/store/account-numbers.ts");
  const database = await SqliteDatabase.open(path, rethrow);
  await migrate(database);
  const writer = new TagWriter(database, systemClock, new AccountNumbers(database), {
    maxTagsPerResource: 1000,
    cache: new ResourceCache(),
    // Another version may know only one of the two.
    ...({ changes: { wake: () => undefined }, onChanged: () => undefined } as const),
  });
  await writer.load(ACCOUNT, toWrites(data));
  await database.close();
  console.error(`loaded ${data.size} resources in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
}

function* toWrites(data: TagData) {
  for (const { type, id, tags } of data.resources()) {
    const resource = { type, id, zoneId: "", parentId: "" };
    yield { action: "set" as const, resource, tags, condition: null, actor: "load" };
  }
}

async function readOne(port: number, data: TagData): Promise<Sample> {
  const headers = { authorization: `Bearer ${ROOT_TOKEN}` };
  const requests = Array.from({ length: 2000 }, () => {
    const { type, id } = data.randomName();
    return buildRequest("GET", `/accounts/${ACCOUNT}/tags?resource_type=${type}&resource_id=${id}`, headers);
  });
  return load32(port, (sequence) => requests[sequence % requests.length] as Buffer);
}

async function load32(port: number, request: (sequence: number) => Buffer): Promise<Sample> {
  const { perSecond, p50Ms, p99Ms, unexpected } = await runLoad({
    port,
    connections: 32,
    durationMs: 2500,
    request,
  });
  if (unexpected > 0) throw new Error(`${unexpected} unexpected answers`);
  return { requests: perSecond, p50: p50Ms, p99: p99Ms };
}

async function writeMany(port: number, data: TagData): Promise<Sample> {
  const headers = { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" };
  const { perSecond, p50Ms, p99Ms, unexpected } = await runLoad({
    port,
    connections: 64,
    durationMs: 4000,
    request: () => {
      const tags = Object.fromEntries(data.tags());
      const { type, id } = data.randomName();
      const body = JSON.stringify({ resource_type: type, resource_id: id, tags });
      return buildRequest("PUT", `/accounts/${ACCOUNT}/tags`, headers, body);
    },
  });
  if (unexpected > 0) throw new Error(`${unexpected} unexpected answers`);
  return { requests: perSecond, p50: p50Ms, p99: p99Ms };
}

function tables(
  name: string,
  hasTextIndex: boolean,
  toCondition: (filters: readonly TagFilter[]) => Condition,
): Contender {
  return {
    name,
    async start(): Promise<RunningContender> {
      const path = join(folder, `${hasTextIndex ? "text" : "json"}.db`);
      const rival = TagTables.load(path, new TagData(SIZE), hasTextIndex);
      return {
        async measure(scenario) {
          if (scenario === READ || scenario === WRITE) return null;
          if (scenario === SPACE) return { database: statSync(path).size / 2 ** 20, memory: 0 };
          const shape = shapeOf(scenario);
          const condition = toCondition(shape.filters);
          return timeQuery(
            () => rival.page(condition, shape.after),
            () => rival.total(condition),
          );
        },
        stop: async () => rival.close(),
      };
    },
  };
}

const bareHttp: Contender = {
  name: "node:http",
  async start() {
    const server = await startOnCore([process.execPath, BARE]);
    const port = Number(new URL((JSON.parse(server.firstLine) as { url: string }).url).port);
    const request = buildRequest("GET", "/");
    return {
      measure: async (scenario) => (scenario === READ ? load32(port, () => request) : null),
      stop: () => server.stop(),
    };
  },
};

function shapeOf(scenario: string): { filters: readonly TagFilter[]; after: number } {
  const shape = SHAPES[scenario];
  if (shape === undefined) throw new Error(`no scenario ${scenario}`);
  return { filters: parseTagFilters(shape.filters), after: Math.floor((shape.depth ?? 0) * SIZE) - 1 };
}

function rethrow(error: Error): never {
  throw error;
}

const LOAD_METRICS: readonly Metric[] = [
  { name: "requests", unit: "1/s", better: "higher" },
  { name: "p50", unit: "ms", better: "lower" },
  { name: "p99", unit: "ms", better: "lower" },
];

export const workload: Workload = {
  name: "tags",
  summary: `${SIZE.toLocaleString("en")} resources with about five tags each, one account`,
  rounds: 3,
  contenders: [
    signalboxAt(THIS_CHECKOUT),
    tables("text table", true, textCondition),
    tables("JSON scan", false, jsonCondition),
    bareHttp,
  ],
  oursAt: signalboxAt,
  scenarios: [
    ...Object.keys(SHAPES).map((name) => ({ name, metrics: QUERY_METRICS })),
    { name: READ, metrics: LOAD_METRICS },
    { name: WRITE, metrics: LOAD_METRICS },
    {
      name: SPACE,
      metrics: [
        { name: "database", unit: "MiB", better: "lower" },
        { name: "memory", unit: "MiB", better: "lower" },
      ],
    },
  ],
  goals: [
    {
      text: "every first page under 10 ms",
      isMet: (median) =>
        Object.keys(SHAPES).every((name) => (median("signalbox", name, "page") ?? Infinity) < 10),
    },
    {
      text: "every exact total under 20 ms",
      isMet: (median) =>
        Object.keys(SHAPES).every((name) => (median("signalbox", name, "total") ?? Infinity) < 20),
    },
    {
      text: "at least 1,000 durable PUT a second",
      isMet: (median) => (median("signalbox", WRITE, "requests") ?? 0) >= 1000,
    },
    {
      text: "reads of one resource at 60 % of node:http's requests per second or more",
      isMet: (median) =>
        (median("signalbox", READ, "requests") ?? 0) >=
        0.6 * (median("node:http", READ, "requests") ?? Infinity),
    },
  ],
};
