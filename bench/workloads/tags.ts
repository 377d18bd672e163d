/**
 * A million tagged resources of one account: first page and exact total of every shape of filter, against plain tables on the same
 * SQLite; and over HTTP, reads, lists and durable writes from concurrent clients. A comparison of two checkouts (`--before`) measures
 * over HTTP only, with a tenth of the resources.
 *
 * `SIGNALBOX_BENCH_RESOURCES` sets another number of resources.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseTagFilters, type TagFilter } from "@signalbox/protocol";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { resourceText } from "../../packages/signalbox/src/tags/show-resource.ts";
import { AccountNumbers } from "../../packages/signalbox/src/tags/store/account-numbers.ts";
import { ResourceCache } from "../../packages/signalbox/src/tags/store/resource-cache.ts";
import { TagReader } from "../../packages/signalbox/src/tags/store/tag-reader.ts";
import { type Condition, jsonCondition, TagTables, textCondition } from "../rivals/tag-tables.ts";
import { runLoad } from "../support/load.ts";
import { roundsOf } from "../support/quick.ts";
import { buildRequest } from "../support/requests.ts";
import { startOnCore } from "../support/server-on-core.ts";
import { startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { formatNumber, percentile } from "../support/statistics.ts";
import { storeTags } from "../support/store-tags.ts";
import { TagData } from "../support/tag-data.ts";
import { LIST, measureOverHttp, READ, ROOT_TOKEN, startOverHttp, WRITE } from "../support/tag-server.ts";
import {
  type Contender,
  loadMetrics,
  type Metric,
  ownFigure,
  type RunningContender,
  type Workload,
} from "../support/workload.ts";

const BARE = join(import.meta.dirname, "../rivals/bare-http.ts");
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
const SPACE = "space";

const QUERY_METRICS: readonly Metric[] = [
  { name: "page", unit: "ms", better: "lower" },
  { name: "total", unit: "ms", better: "lower" },
];

const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-tags-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

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

const signalbox: Contender = {
  name: "signalbox",
  async start() {
    const dataDir = mkdtempSync(join(folder, "signalbox-"));
    const path = join(dataDir, "signalbox.db");
    const data = new TagData(SIZE);
    await storeTags(path, data);
    const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
    const server = await startSignalbox({ checkout: THIS_CHECKOUT, dataDir, env });
    const database = await SqliteDatabase.open(path, rethrow);
    const reader = new TagReader(database, new AccountNumbers(database), new ResourceCache(), resourceText);
    return {
      async measure(scenario) {
        if (scenario === SPACE) {
          return { database: statSync(path).size / 2 ** 20, memory: (server.residentBytes() ?? 0) / 2 ** 20 };
        }
        if (SHAPES[scenario] === undefined) return measureOverHttp(server, scenario, data);
        const shape = shapeOf(scenario);
        const query = { filters: shape.filters, isCaseInsensitive: false, types: [], ids: [], name: null };
        return timeQuery(
          () => reader.list(ACCOUNT, query, shape.after, PAGE),
          () => reader.total(ACCOUNT, query),
        );
      },
      cpuTimes: server.cpuTimes,
      async stop() {
        await database.close();
        await server.stop();
      },
    };
  },
};

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
          if (scenario === SPACE) return { database: statSync(path).size / 2 ** 20, memory: 0 };
          if (SHAPES[scenario] === undefined) return null;
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
    const requests = [buildRequest("GET", "/")];
    return {
      async measure(scenario) {
        if (scenario !== READ) return null;
        const { perSecond } = await runLoad({ port, connections: 32, durationMs: 2500, requests });
        return { requests: perSecond };
      },
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

export const workload: Workload = {
  name: "tags",
  summary: `${SIZE.toLocaleString("en")} resources with about five tags each, one account`,
  rounds: roundsOf(3),
  contenders: [
    signalbox,
    tables("text table", true, textCondition),
    tables("JSON scan", false, jsonCondition),
    bareHttp,
  ],
  oursAt: (checkout) => ({
    name: "signalbox",
    start: () => startOverHttp(checkout, new TagData(SIZE / 10)),
  }),
  scenarios: [
    ...Object.keys(SHAPES).map((name) => ({ name, metrics: QUERY_METRICS })),
    ...[READ, LIST, WRITE].map((name) => ({ name, metrics: loadMetrics("requests", "request") })),
    {
      name: SPACE,
      metrics: [
        { name: "database", unit: "MiB", better: "lower" },
        { name: "memory", unit: "MiB", better: "lower" },
      ],
    },
  ],
  headlines: [
    {
      text: "the slowest first page of eleven kinds of filters, among a million resources",
      figure(median) {
        const pages = Object.keys(SHAPES).map((name) => median("signalbox", name, "page") ?? NaN);
        return pages.some(Number.isNaN) ? null : `${formatNumber(Math.max(...pages))} ms`;
      },
    },
    ownFigure("durable changes of tags, 64 connections", WRITE, "requests", "PUT/s"),
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
      text: "at least 5,000 durable PUT a second",
      isMet: (median) => (median("signalbox", WRITE, "requests") ?? 0) >= 5000,
    },
    {
      text: "reads of one resource at 60 % of node:http's requests per second or more",
      isMet: (median) =>
        (median("signalbox", READ, "requests") ?? 0) >=
        0.6 * (median("node:http", READ, "requests") ?? Infinity),
    },
  ],
};
