/**
 * Day files of earlier and later versions. The tables of columns are replaced by tables with entries of later versions, so these tests also
 * show that an entry is all that a new column needs.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ALL_TIME, callRecord, DAY, FIRST_PAGE, GATEWAY, NOON, packed } from "./call-log-fixture.ts";
import type { CallRecord } from "./call-log.ts";
import { CallReader } from "./call-reader.ts";
import { CallWriter } from "./call-writer.ts";
import { dayOf, dayPath } from "./day-files.ts";
import { migrationSql, VERSION } from "./day-schema.ts";
import type { CallField, CallOrder, CallSelection } from "./selection.ts";
import { setVersionOfFile, versionOfFile, writeVersion1File } from "./version-1-fixture.ts";

vi.mock("./columns.ts", async (importOriginal) => {
  const original = await importOriginal<typeof import("./columns.ts")>();
  return {
    ...original,
    CALL_COLUMNS: {
      ...original.CALL_COLUMNS,
      region: { kind: "text", filterable: true, sortable: true, since: 2, default: "it's old" },
      retries: { kind: "integer", nullable: true, filterable: true, since: 3 },
    },
    USAGE_SUMS: {
      ...original.USAGE_SUMS,
      retries: {
        kind: "integer",
        of: (call: { number(name: string): number }) => call.number("retries"),
        since: 3,
      },
    },
  };
});

const REGION = "region" as CallField;
const RETRIES = "retries" as CallField;

let folder: string;
let path: string;
let ids: string[];
let writer: CallWriter;
let reader: CallReader;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-versions-"));
  path = dayPath(folder, dayOf(NOON));
  ids = writeVersion1File(path, NOON, 3);
  writer = openWriter();
  reader = new CallReader(folder);
});
afterEach(() => {
  reader.close();
  writer.close();
  rmSync(folder, { recursive: true, force: true });
});

function openWriter(): CallWriter {
  return new CallWriter({ folder, maxBodyBytes: 1_000_000, maxTotalBytes: 100_000_000 });
}

function newCall(
  fields: Partial<CallRecord> & { region?: string; retries?: number | null } = {},
): CallRecord {
  const added = { region: "eu", retries: 2, createdAt: NOON + 60_000, ...fields };
  return callRecord(added);
}

function where(field: CallField, value: string | number | null): CallSelection {
  return { filters: [{ field, operator: "eq", values: [value] }], search: "" };
}

const list = (selection: CallSelection = FIRST_PAGE) =>
  reader.list(GATEWAY, { ...FIRST_PAGE, ...selection, direction: "asc" });
const listedIds = (selection?: CallSelection) => list(selection).rows.map((row) => row.id);
const usage = () => reader.summarise({ ...ALL_TIME, groupBy: [] });

it("derives the version from the newest column", () => {
  expect(VERSION).toBe(3);
});

it("reads a file of an earlier version with defaults, without a migration", () => {
  const page = list();
  expect(page.total).toBe(3);
  expect(page.rows.map((row) => row.id)).toEqual(ids);
  expect(page.rows[0]).toMatchObject({ region: "it's old", retries: null, tokensIn: 10, success: true });
  expect(reader.get(GATEWAY, ids[1] ?? "")).toMatchObject({ id: ids[1], region: "it's old" });
  expect(Buffer.from(reader.body(GATEWAY, ids[2] ?? "", "response")?.bytes ?? []).toString()).toBe("body 2");
  expect(listedIds(where(REGION, "it's old"))).toEqual(ids);
  expect(listedIds(where(REGION, "eu"))).toEqual([]);
  expect(listedIds(where(RETRIES, null))).toEqual(ids);
  expect(reader.ranges(GATEWAY, where(REGION, "it's old")).cost).toEqual({ min: 0.5, max: 0.5 });
  expect(usage()).toMatchObject([{ calls: 3, tokensIn: 30, cost: 1.5, retries: 0 }]);
  expect(versionOfFile(path)).toBe(1);
});

it("counts the rows of an earlier version towards a quota, without a migration", () => {
  writer.setQuota(GATEWAY, { maxRows: 4, whenFull: "stop" });
  expect(writer.trim()).toBe(false);
  expect(versionOfFile(path)).toBe(1);
  writer.write(packed(newCall({ createdAt: NOON + DAY }), newCall({ createdAt: NOON + DAY + 1 })));
  expect(list().total).toBe(4);
  expect(usage()).toMatchObject([{ calls: 5, retries: 4 }]);
});

it("migrates a file before it adds a call, and a reader that has the file open sees the added columns", () => {
  expect(listedIds()).toEqual(ids);
  const call = newCall();
  writer.write(packed(call));
  expect(versionOfFile(path)).toBe(VERSION);
  expect(listedIds()).toEqual([...ids, call.id]);
  expect(list().rows.at(-1)).toMatchObject({ region: "eu", retries: 2 });
  expect(list().rows[0]).toMatchObject({ region: "it's old", retries: null });
  expect(listedIds(where(REGION, "eu"))).toEqual([call.id]);
  expect(listedIds(where(REGION, "it's old"))).toEqual(ids);
  expect(usage()).toMatchObject([{ calls: 4, retries: 2 }]);
});

it("sorts by an added column over files of both versions", () => {
  const call = newCall({ createdAt: NOON + DAY });
  writer.write(packed(call));
  const orderBy = "region" as CallOrder;
  const page = reader.list(GATEWAY, { ...FIRST_PAGE, orderBy, direction: "asc" });
  expect(page.rows.map((row) => row.id)).toEqual([call.id, ...ids]);
});

it("edits and deletes calls of an earlier version", async () => {
  expect(writer.edit(GATEWAY, ids[0] ?? "", { feedback: 1 })).toBe(true);
  expect(reader.get(GATEWAY, ids[0] ?? "")).toMatchObject({ feedback: 1, region: "it's old" });
  expect(await writer.deleteIds(GATEWAY, [ids[0] ?? ""])).toBe(1);
  expect(await writer.deleteMatching(GATEWAY, where(REGION, "eu"))).toBe(0);
  expect(await writer.deleteMatching(GATEWAY, where(REGION, "it's old"))).toBe(2);
  expect(list().total).toBe(0);
  expect(usage()).toMatchObject([{ calls: 3 }]);
  await writer.dropGateway(GATEWAY);
  expect(usage()).toEqual([]);
});

it("applies a `deleteOldest` quota and the size limit to a file of an earlier version", () => {
  writer.setQuota(GATEWAY, { maxRows: 1, whenFull: "deleteOldest" });
  while (writer.trim());
  expect(listedIds()).toEqual(ids.slice(2));
  writer.close();
  writer = new CallWriter({ folder, maxBodyBytes: 1_000_000, maxTotalBytes: 1 });
  while (writer.trim());
  expect(list().total).toBe(0);
  expect(usage()).toMatchObject([{ calls: 3 }]);
});

it("expires a file of an earlier version", () => {
  writer.expire(NOON + 3 * DAY, 1);
  expect(list().total).toBe(0);
});

it("keeps the former version if the process is killed in the middle of a migration", () => {
  const statements = `BEGIN IMMEDIATE; ${migrationSql(1)} UPDATE call SET model = 'lost';`;
  const script = `
    const file = new (require("node:sqlite").DatabaseSync)(process.env.FILE);
    file.exec("PRAGMA cache_size = 1;");
    file.exec(process.env.STATEMENTS);
    process.kill(process.pid, "SIGKILL");`;
  const env = { ...process.env, FILE: path, STATEMENTS: statements };
  expect(spawnSync(process.execPath, ["-e", script], { env }).signal).toBe("SIGKILL");
  expect(versionOfFile(path)).toBe(1);
  expect(list().rows[0]).toMatchObject({ model: "gpt-5-mini", region: "it's old" });
  const call = newCall();
  writer.write(packed(call));
  expect(versionOfFile(path)).toBe(VERSION);
  expect(listedIds()).toEqual([...ids, call.id]);
});

it("neither reads nor changes a file of a later version, and reports its day", async () => {
  setVersionOfFile(path, VERSION + 1);
  const bytes = readFileSync(path);
  const other = newCall({ createdAt: NOON + DAY });
  writer.write(packed(other));
  expect(writer.unreadableDays).toEqual(["2026-11-15"]);
  expect(listedIds()).toEqual([other.id]);
  expect(usage()).toMatchObject([{ calls: 1 }]);
  expect(() => writer.write(packed(newCall()))).toThrow(/version 4, this release reads versions up to 3/);
  expect(writer.edit(GATEWAY, ids[0] ?? "", { feedback: 1 })).toBe(false);
  expect(await writer.deleteMatching(GATEWAY, FIRST_PAGE)).toBe(1);
  await writer.dropGateway(GATEWAY);
  while (writer.trim());
  expect(Buffer.compare(readFileSync(path), bytes)).toBe(0);
  writer.expire(NOON + 3 * DAY, 1);
  expect(writer.unreadableDays).toEqual([]);
});
