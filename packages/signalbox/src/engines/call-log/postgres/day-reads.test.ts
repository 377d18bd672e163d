/** Lists and ranges that are kept of the days that have not changed. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import type { SqlQuery } from "../../../core/sql.ts";
import type { CallRecord } from "../call-log.ts";
import { callRecord, DAY, GATEWAY, NOON } from "../call-log-fixture.ts";
import type { CallFilter, CallPageRequest } from "../selection.ts";
import { DayReads } from "./day-reads.ts";
import type { PostgresCallLog } from "./postgres-call-log.ts";
import { PostgresLogs, type PostgresStorage } from "./postgres-log-fixture.ts";

const DAYS = 4;
const CALLS = 120;
const OTHER = { accountId: "other", gatewayId: "main" };
const FAILED: CallFilter = { field: "success", operator: "eq", values: [0] };
const PAGES: readonly Partial<CallPageRequest>[] = [
  { filters: [FAILED] },
  { filters: [FAILED], direction: "asc", offset: 3 },
  { filters: [FAILED], orderBy: "cost", limit: 7 },
  { orderBy: "cost", offset: 20 },
  { orderBy: "cost", direction: "asc" },
  { orderBy: "model", offset: 60 },
  { search: "user-3" },
  { search: "user-3", orderBy: "durationMs" },
  { filters: [{ field: "createdAt", operator: "lt", values: [NOON - DAY] }] },
  { filters: [{ field: "metadataKey", operator: "eq", values: ["user"] }], limit: 100, offset: 10 },
  { search: "no such text" },
];

let logs: PostgresLogs;
let storage: PostgresStorage;
let log: PostgresCallLog;
let calls: CallRecord[];
let texts: string[];
let queries: SqlQuery[];
let reads: DayReads;

beforeAll(async () => {
  logs = await PostgresLogs.start();
});
afterAll(() => logs.stop());

beforeEach(async () => {
  storage = await logs.openStorage();
  log = await storage.openLog({ maxAgeDays: 36_500, flushIntervalMs: 20 });
  calls = Array.from({ length: CALLS }, (_, i) => numbered(i));
  for (const call of calls) log.record(call);
  for (let i = 0; i < 8; i++) log.record({ ...numbered(i), ...OTHER });
  await log.flush();
  texts = [];
  queries = [];
  const { database } = storage;
  reads = new DayReads({
    run: (query) => database.run(query),
    all: (query) => database.all(noted(query)),
    get: (query) => database.get(noted(query)),
  });
});
afterEach(async () => {
  await log.close();
  await storage.remove();
});

function noted(query: SqlQuery): SqlQuery {
  texts.push(query.parts.join("?"));
  queries.push(query);
  return query;
}

/** Its cost has equals on other days, and every seventh call has failed. */
function numbered(i: number): CallRecord {
  return callRecord({
    createdAt: NOON - (i % DAYS) * DAY + i,
    cost: i % 5 === 0 ? null : i % 10,
    model: `model-${i % 3}`,
    durationMs: i % 17,
    success: i % 7 !== 0,
    metadata: `{"user":"user-${i % 6}"}`,
  });
}

function pageOf(page: Partial<CallPageRequest>): CallPageRequest {
  return { filters: [], search: "", orderBy: "createdAt", direction: "desc", offset: 0, limit: 20, ...page };
}

/** Ids and totals of all pages, and the ranges. */
async function answers(from: DayReads): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const page of PAGES.map(pageOf)) {
    const { rows, total } = await from.list(GATEWAY, page);
    found.push(page, rows, total);
  }
  found.push(await from.ranges(GATEWAY, { filters: [], search: "" }));
  found.push(await from.ranges(GATEWAY, { filters: [FAILED], search: "" }));
  return found;
}

const fresh = () => answers(new DayReads(storage.database));

it("pages are those of all calls in their order", async () => {
  const ids = async (page: Partial<CallPageRequest>) =>
    (await reads.list(GATEWAY, pageOf(page))).rows.map(({ id }) => id);
  const byId = (a: CallRecord, b: CallRecord) => (a.id < b.id ? 1 : -1);
  const newest = calls.toSorted(byId);
  const failed = newest.filter(({ success }) => !success);
  expect(await ids({ filters: [FAILED], offset: 5, limit: 6 })).toEqual(
    failed.slice(5, 11).map(({ id }) => id),
  );
  expect(await ids({ filters: [FAILED], direction: "asc", limit: 100 })).toEqual(
    failed.toReversed().map(({ id }) => id),
  );
  const dearest = newest.toSorted((a, b) => (b.cost ?? -1) - (a.cost ?? -1) || byId(a, b));
  expect(await ids({ orderBy: "cost", offset: 15, limit: 50 })).toEqual(
    dearest.slice(15, 65).map(({ id }) => id),
  );
  expect((await reads.list(GATEWAY, pageOf({ filters: [FAILED], limit: 1 }))).total).toBe(failed.length);
  expect(
    await reads.list({ accountId: "default", gatewayId: "unknown" }, pageOf({ orderBy: "cost" })),
  ).toEqual({
    rows: [],
    total: 0,
  });
});

it("counts and pages the matches of a day that has many", async () => {
  const many = Array.from({ length: 2500 }, (_, i) =>
    callRecord({ createdAt: NOON - 9 * DAY + i, model: i % 5 === 0 ? "rare" : "many" }),
  );
  for (const call of many) log.record(call);
  await log.flush();
  const wanted = many.filter(({ model }) => model === "many").map(({ id }) => id);
  const page = pageOf({
    filters: [{ field: "model", operator: "eq", values: ["many"] }],
    offset: 1500,
    limit: 30,
  });
  const { rows, total } = await reads.list(GATEWAY, page);
  expect([total, rows.map(({ id }) => id)]).toEqual([2000, wanted.toReversed().slice(1500, 1530)]);
  texts = [];
  const next = await reads.list(GATEWAY, { ...page, offset: 1970, limit: 100 });
  expect([next.total, next.rows.map(({ id }) => id)]).toEqual([2000, wanted.toReversed().slice(1970)]);
  expect(texts.filter((text) => text.includes("count(*)"))).toEqual([]);
});

it.each<[CallFilter["field"], number, string]>([
  ["success", 0, "call_log_failed_"],
  ["cached", 1, "call_log_cached_"],
])("the calls whose %s is %i are found by an index of them", async (field, value, index) => {
  for (let i = 0; i < 3000; i++)
    log.record(callRecord({ createdAt: NOON - 9 * DAY + i, success: i % 500 !== 1, cached: i % 500 === 2 }));
  await log.flush();
  await storage.query("ANALYZE call_log");
  const page = pageOf({ filters: [{ field, operator: "eq", values: [value] }] });
  queries = [];
  expect((await reads.list(GATEWAY, page)).total).toBeGreaterThanOrEqual(6);
  const plans: string[] = [];
  for (const { parts, values } of queries) {
    const text = parts.reduce((before, part, i) => `${before}$${i}${part}`);
    const plan = await storage.query(`EXPLAIN ${text}`, values);
    plans.push(plan.map((line) => Object.values(line as Record<string, string>)[0]).join("\n"));
  }
  expect(plans.join("\n")).toContain(index);
});

it("what has not changed is not read again", async () => {
  const first = await answers(reads);
  texts = [];
  expect(await answers(reads)).toEqual(first);
  // The days, and the rows of the page.
  const scans = texts.filter((text) => !/FROM call_log_count|id = ANY/.test(text));
  expect(scans).toEqual([]);
});

it("after each kind of change, only the days that have changed are read again, and nothing old is shown", async () => {
  const [, , , old] = calls;
  if (old === undefined) throw new Error("there are calls");
  const changes: readonly (() => Promise<unknown>)[] = [
    () => log.edit(GATEWAY, old.id, { metadata: '{"user":"user-3 again"}' }),
    () => log.edit(GATEWAY, old.id, { score: 5 }),
    () => log.delete(GATEWAY, { ...pageOf({ filters: [FAILED] }), limit: 3 }),
    () => log.delete(GATEWAY, { ...pageOf({ search: "user-1" }), limit: null }),
    async () => {
      log.record({ ...numbered(7), id: callRecord({ createdAt: NOON - 2 * DAY }).id });
      await log.flush();
    },
  ];
  await answers(reads);
  for (const change of changes) {
    await change();
    texts = [];
    expect(await answers(reads)).toEqual(await fresh());
  }
  texts = [];
  await log.edit(GATEWAY, old.id, { score: 6 });
  await reads.list(GATEWAY, pageOf({ search: "user-3" }));
  expect(
    texts.filter((text) => text.includes("FROM call_log WHERE") && !text.includes("id = ANY")),
  ).toHaveLength(1);
});

it("another gateway has its own days, and a dropped one has none", async () => {
  await answers(reads);
  expect((await reads.list(OTHER, pageOf({ orderBy: "cost" }))).total).toBe(8);
  await log.dropGateway(GATEWAY);
  expect((await reads.list(GATEWAY, pageOf({ orderBy: "cost" }))).total).toBe(0);
  expect((await reads.list(OTHER, pageOf({ filters: [FAILED] }))).total).toBe(2);
});

it("nothing is kept of another server", async () => {
  await answers(reads);
  reads.forget();
  texts = [];
  await reads.list(GATEWAY, pageOf({ search: "user-3" }));
  expect(texts.filter((text) => text.includes("metadata"))).not.toEqual([]);
});
