/** Pages, orders and ranges that a reader keeps of the days that are over. */
import { mkdtemp, rm } from "node:fs/promises";
import { readdirSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SqliteConnection } from "../sqlite-file/index.ts";
import type { CallRecord } from "./call-log.ts";
import { callRecord, DAY, GATEWAY, NOON } from "./call-log-fixture.ts";
import { CallReader } from "./call-reader.ts";
import { SqliteCallLog } from "./sqlite-call-log.ts";
import type { CallPageRequest, CallSelection } from "./selection.ts";

const DAYS = 4;
const FAILED: CallSelection = {
  filters: [{ field: "success", operator: "eq", values: [0] }],
  search: "",
};
const ALL: CallSelection = { filters: [], search: "" };
const OTHER = { accountId: "other", gatewayId: "main" };

let folder: string;
let log: SqliteCallLog;
let now: number;
let reader: CallReader;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-pages-"));
  now = NOON;
  log = await SqliteCallLog.open({
    folder,
    maxAgeDays: 10,
    clock: { now: () => now },
    flushIntervalMs: 20,
    maxBodyBytes: 1000,
    maxTotalBytes: 1_000_000_000,
    maxQueuedCalls: 10_000,
    maxQueuedBytes: 64_000_000,
    onError: fail,
    onFatal: fail,
  });
  for (let i = 0; i < DAYS * 30; i++) log.record(numbered(i));
  for (let i = 0; i < 8; i++) log.record({ ...numbered(i), ...OTHER });
  await log.flush();
  // Today's file is among those that the writer has open: opening another one closes a file, which changes it.
  log.record(callRecord());
  await log.flush();
  reader = new CallReader(folder);
});
afterEach(async () => {
  vi.restoreAllMocks();
  reader.close();
  await log.close();
  await rm(folder, { recursive: true, force: true });
});

/** Its cost has equals on other days, and every seventh call has failed. */
function numbered(i: number): CallRecord {
  return callRecord({
    createdAt: NOON - (i % DAYS) * DAY + i,
    cost: ((i * 37) % 20) / 1000,
    success: i % 7 !== 0,
  });
}

function fail(error: Error): never {
  throw error;
}

function page(
  selection: CallSelection,
  orderBy: CallPageRequest["orderBy"],
  offset: number,
): CallPageRequest {
  return { ...selection, orderBy, direction: offset % 2 === 0 ? "desc" : "asc", offset, limit: 9 };
}

/** Every page in every order, and the ranges, of two accounts. */
function everything(of: CallReader): unknown {
  const ids = (gateway: typeof GATEWAY, request: CallPageRequest) => {
    const { rows, total } = of.list(gateway, request);
    return [total, ...rows.map(({ id }) => id)];
  };
  return [GATEWAY, OTHER].map((gateway) =>
    [ALL, FAILED].map((selection) => [
      of.ranges(gateway, selection),
      ...(["createdAt", "cost", "model"] as const).flatMap((orderBy) =>
        [0, 9, 18, 27, 100, 119].map((offset) => ids(gateway, page(selection, orderBy, offset))),
      ),
    ]),
  );
}

/** What a reader answers that has kept nothing. */
function anew(): unknown {
  const fresh = new CallReader(folder);
  try {
    return everything(fresh);
  } finally {
    fresh.close();
  }
}

/** The number of statements over the rows of a file, without those that read one row by its id. */
function countStatements(work: () => unknown): number {
  let count = 0;
  for (const method of ["all", "get"] as const)
    vi.spyOn(SqliteConnection.prototype, method).mockImplementation(function (this: SqliteConnection, query) {
      const text = query.parts.join("?");
      if (text.includes("FROM call") && !text.includes("AND id = ")) count += 1;
      return original[method].call(this, query);
    });
  work();
  vi.restoreAllMocks();
  return count;
}

const original = { all: SqliteConnection.prototype.all, get: SqliteConnection.prototype.get };

describe("days that have not changed", () => {
  it.each([
    ["an order", () => reader.list(GATEWAY, page(ALL, "cost", 18))],
    ["a filter in the order of time", () => reader.list(GATEWAY, page(FAILED, "createdAt", 0))],
    ["the ranges", () => reader.ranges(GATEWAY, FAILED)],
  ])("are not read again for %s", (_, read) => {
    expect(countStatements(read)).toBeGreaterThanOrEqual(DAYS);
    expect(countStatements(read)).toBe(0);
  });

  it("are not read again for the next pages of an order", () => {
    reader.list(GATEWAY, page(ALL, "cost", 0));
    expect(countStatements(() => reader.list(GATEWAY, page(ALL, "cost", 90)))).toBe(0);
  });

  it("are not read again when another day gets a row", async () => {
    reader.list(GATEWAY, page(ALL, "cost", 0));
    log.record(callRecord({ cost: 1 }));
    await log.flush();
    expect(countStatements(() => reader.list(GATEWAY, page(ALL, "cost", 0)))).toBe(1);
  });
});

it("pages and ranges are those of the files, also from what is kept", () => {
  const first = everything(reader);
  expect(everything(reader)).toEqual(first);
  expect(anew()).toEqual(first);
});

it.each<[string, () => unknown]>([
  ["a late row", () => log.record(callRecord({ createdAt: NOON - 2 * DAY, cost: 0.5, success: false }))],
  ["a row of another account", () => log.record(callRecord({ ...OTHER, createdAt: NOON - DAY, cost: 9 }))],
  ["a row of a new day", () => log.record(callRecord({ createdAt: NOON + DAY, cost: 0.6, success: false }))],
  ["a deletion", () => log.delete(GATEWAY, { ...FAILED, orderBy: "createdAt", direction: "asc", limit: 4 })],
  ["a gateway that was removed", () => log.dropGateway(GATEWAY)],
])("after %s, what is kept is not shown", async (_, change) => {
  const before = everything(reader);
  await change();
  await log.flush();
  const after = everything(reader);
  expect(after).toEqual(anew());
  expect(after).not.toEqual(before);
});

it("a day that was removed is gone from every list, its file is closed, and a new file of the same day is read", async () => {
  const before = everything(reader);
  now = NOON + 7 * DAY + DAY / 2;
  await log.expire();
  const without = everything(reader);
  expect(without).toEqual(anew());
  expect(without).not.toEqual(before);
  const open = readdirSync("/proc/self/fd").flatMap((fd) => linkOf(`/proc/self/fd/${fd}`));
  expect(open.filter((path) => path.startsWith(folder) && path.endsWith("(deleted)"))).toEqual([]);
  log.record(callRecord({ createdAt: NOON - 3 * DAY, cost: 0.7, success: false }));
  await log.flush();
  const after = everything(reader);
  expect(after).toEqual(anew());
  expect(after).not.toEqual(without);
});

/** The file of a descriptor, if it is still open. */
function linkOf(descriptor: string): string[] {
  try {
    return [readlinkSync(descriptor)];
  } catch {
    return [];
  }
}
