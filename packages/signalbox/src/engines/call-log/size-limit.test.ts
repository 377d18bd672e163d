/** The size limit on real day files: what is removed, what stays, and how much disk is freed. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { callRecord, DAY, FIRST_PAGE, GATEWAY, NOON, packed } from "./call-log-fixture.ts";
import { CallReader } from "./call-reader.ts";
import { CallWriter } from "./call-writer.ts";
import { dayOf, dayPath } from "./day-files.ts";

const KB = 1024;
const MB = 1024 * KB;
/** Pages other than those of bodies: tables, indexes, the ends of overflow chains. */
const SLACK = 256 * KB;

let folder: string;
let writer: CallWriter;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-size-"));
});
afterEach(() => {
  writer.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(maxTotalBytes: number): void {
  writer = new CallWriter({ folder, maxBodyBytes: 10 * MB, maxTotalBytes });
}
function reopen(maxTotalBytes: number): void {
  writer.close();
  open(maxTotalBytes);
}

/** Writes one call with an incompressible body. */
function write(day: number, kilobytes: number, fields = {}): string {
  const body = kilobytes === 0 ? null : randomBytes(kilobytes * KB);
  const call = callRecord({ createdAt: NOON + day * DAY, responseBody: body, ...fields });
  writer.write(packed(call));
  return call.id;
}
function trim(): void {
  while (writer.trim());
}
const diskBytes = () =>
  readdirSync(folder)
    .map((name) => statSync(join(folder, name)).size)
    .reduce((sum, size) => sum + size, 0);
const reading = <T>(read: (reader: CallReader) => T): T => {
  const reader = new CallReader(folder);
  try {
    return read(reader);
  } finally {
    reader.close();
  }
};
const bodiesOf = (ids: readonly string[]) =>
  reading((reader) => ids.map((id) => reader.body(GATEWAY, id, "response") !== null));
const total = () => reading((reader) => reader.list(GATEWAY, FIRST_PAGE).total);
const calls = () =>
  reading((reader) =>
    reader.summarise({ accountId: "default", gatewayIds: null, from: 0, to: NOON * 2, groupBy: [] }),
  )
    .map((figures) => figures.calls)
    .reduce((sum, count) => sum + count, 0);

it("removes the oldest bodies of all days, keeps rows and usage, and frees the disk space", () => {
  open(5 * MB);
  const ids = [0, 1, 2].flatMap((day) => Array.from({ length: 8 }, () => write(day, 256)));
  expect(writer.bytes).toBeGreaterThan(6 * MB);
  trim();
  expect(writer.bytes).toBeLessThanOrEqual(5 * MB);
  const kept = bodiesOf(ids);
  // The bodies from some call on are kept, those before are removed.
  expect(kept).toEqual(kept.toSorted((a, b) => Number(a) - Number(b)));
  expect(kept.filter(Boolean).length).toBeGreaterThanOrEqual(17);
  expect(kept[0]).toBe(false);
  expect(writer.removed).toEqual({ bodies: kept.filter((is) => !is).length, rows: 0 });
  expect([total(), calls()]).toEqual([24, 24]);
  writer.close();
  expect(diskBytes()).toBeLessThanOrEqual(5 * MB + SLACK);
});

it("reuses the free pages of the current day, so that its file does not grow", () => {
  open(2 * MB);
  const ids: string[] = [];
  for (let i = 0; i < 60; i++) {
    ids.push(write(0, 256));
    trim();
  }
  expect(writer.bytes).toBeLessThanOrEqual(2 * MB);
  expect(bodiesOf(ids).slice(-5)).toEqual([true, true, true, true, true]);
  expect(total()).toBe(60);
  writer.close();
  expect(diskBytes()).toBeLessThanOrEqual(2 * MB + 512 * KB);
});

it("applies after a restart, and with a lower limit", () => {
  open(4 * MB);
  for (let day = 0; day < 3; day++) for (let i = 0; i < 4; i++) write(day, 256);
  trim();
  reopen(4 * MB);
  trim();
  expect(writer.removed).toEqual({ bodies: 0, rows: 0 });
  reopen(2 * MB);
  trim();
  expect(writer.bytes).toBeLessThanOrEqual(2 * MB);
  writer.close();
  expect(diskBytes()).toBeLessThanOrEqual(2 * MB + SLACK);
  expect(total()).toBe(12);
});

it("removes the oldest rows when no body is left, and keeps the usage", () => {
  open(100 * MB);
  for (let day = 0; day < 3; day++) {
    writer.write(
      packed(
        ...Array.from({ length: 4000 }, () =>
          callRecord({ createdAt: NOON + day * DAY, userAgent: "x".repeat(200) }),
        ),
      ),
    );
  }
  const size = writer.bytes;
  const newest = write(2, 64);
  reopen(Math.floor(size / 2));
  trim();
  expect(writer.bytes).toBeLessThanOrEqual(size / 2);
  expect(writer.removed.rows).toBeGreaterThan(4000);
  expect(writer.removed.bodies).toBe(1);
  expect(total()).toBe(12_001 - writer.removed.rows);
  expect(calls()).toBe(12_001);
  expect(reading((reader) => reader.get(GATEWAY, newest))).not.toBeNull();
  // Quotas use the reduced count.
  writer.setQuota(GATEWAY, { maxRows: 10, whenFull: "deleteOldest" });
  trim();
  expect(total()).toBe(10);
});

it("ends when nothing is left to remove", () => {
  open(1);
  write(0, 64);
  write(1, 64);
  trim();
  expect(total()).toBe(0);
  expect(calls()).toBe(2);
});

it("rewrites a file without incremental vacuum when its bodies are removed", () => {
  open(100 * MB);
  writer.close();
  const path = dayPath(folder, dayOf(NOON));
  open(100 * MB);
  for (let i = 0; i < 8; i++) write(0, 256);
  writer.close();
  const old = new DatabaseSync(path);
  old.exec("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM;");
  expect(old.prepare("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 0 });
  old.close();
  open(2 * MB);
  const ids = Array.from({ length: 4 }, () => write(1, 256));
  trim();
  expect(writer.bytes).toBeLessThanOrEqual(2 * MB);
  expect(bodiesOf(ids)).toEqual([true, true, true, true]);
  expect(total()).toBe(12);
  writer.close();
  expect(diskBytes()).toBeLessThanOrEqual(2 * MB + SLACK);
});
