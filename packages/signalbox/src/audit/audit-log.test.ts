import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { currentWrite, type WriteFacts } from "../contracts/audit-trail.ts";
import { sql } from "../core/sql.ts";
import { migrate } from "../database/migrate.ts";
import { SqliteDatabase } from "../database/sqlite/sqlite-database.ts";
import { AuditLog } from "./audit-log.ts";
import { type AuditFilter, AuditReader } from "./audit-reader.ts";
import { AuditedDatabase } from "./audited-database.ts";

const DAY_MS = 86_400_000;

let folder: string;
let database: SqliteDatabase;
let log: AuditLog;
let now: number;
const errors: unknown[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-audit-"));
  database = await SqliteDatabase.open(join(folder, "test.db"), (error) => {
    throw error;
  });
  await migrate(database);
  now = Date.parse("2026-01-01T00:00:00Z");
  errors.length = 0;
  log = new AuditLog({
    database,
    clock: { now: () => now },
    retention: { retentionDays: 10, maxEntries: 500 },
    trustedProxies: [],
    onError: (error) => errors.push(error),
  });
});
afterEach(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

const facts = (rest: Partial<WriteFacts> = {}): WriteFacts => ({
  accountId: "a",
  requestId: "r",
  actor: { type: "token", id: "t1", name: "t", session: null, ip: null },
  action: "update",
  operation: "PUT /x",
  resourceType: "x",
  resourceId: "1",
  path: "/x/1",
  userAgent: null,
  forwardedFor: null,
  ...rest,
});
const DONE = { outcome: "success", status: 200, code: null, message: null } as const;
const REFUSED = { outcome: "refused", status: 403, code: 10003, message: "no" } as const;

async function outcomes(accountId = "a"): Promise<string[]> {
  const rows = await database.all<{ outcome: string; action: string }>(
    sql`SELECT outcome, action FROM audit_entry WHERE account_id = ${accountId} ORDER BY seq`,
  );
  return rows.map(({ outcome, action }) => `${action} ${outcome}`);
}

async function claims(): Promise<number> {
  return (await database.all(sql`SELECT id FROM audit_claim`)).length;
}

it("the first transaction of a write carries a claim, which the entry replaces", async () => {
  const audited = new AuditedDatabase(database);
  const write = log.begin(facts());
  await currentWrite.run(write, async () => {
    await audited.run(sql`INSERT INTO account (id, name, created_at) VALUES ('n', 'n', 1)`);
    expect(await claims()).toBe(1);
    await audited.run(sql`INSERT INTO account (id, name, created_at) VALUES ('m', 'm', 1)`);
    expect(await claims()).toBe(1);
  });
  await write.finish(DONE);
  expect([await claims(), await outcomes()]).toEqual([0, ["update success"]]);
});

it("a transaction that is rolled back leaves neither a claim nor a change", async () => {
  const audited = new AuditedDatabase(database);
  const write = log.begin(facts());
  const failing = currentWrite.run(write, () =>
    audited.transaction(async (tx) => {
      await tx.run(sql`INSERT INTO account (id, name, created_at) VALUES ('n', 'n', 1)`);
      throw new Error("no");
    }),
  );
  await expect(failing).rejects.toThrow("no");
  expect(await claims()).toBe(0);
  await write.finish(REFUSED);
  expect(await outcomes()).toEqual(["update refused"]);
});

it("code outside a write stores no claim", async () => {
  await new AuditedDatabase(database).run(
    sql`INSERT INTO account (id, name, created_at) VALUES ('n', 'n', 1)`,
  );
  expect(await claims()).toBe(0);
});

it("a start turns every claim that was left behind into one entry without an outcome", async () => {
  const write = log.begin(facts());
  await database.transaction((tx) => write.claimIn(tx));
  await log.start();
  await log.stop();
  expect([await claims(), await outcomes()]).toEqual([0, ["update unknown"]]);
});

it("a flood of refusals of one caller is counted, not stored, and the count is an entry", async () => {
  for (let i = 0; i < 320; i++) await log.begin(facts()).finish(REFUSED);
  await log.begin(facts({ actor: { ...facts().actor, id: "t2" } })).finish(REFUSED);
  expect(await outcomes()).toHaveLength(301);
  now += 61_000;
  await log.keep();
  const [last] = (await new AuditReader(database).page("a", {}, { limit: 1, after: null, direction: "desc" }))
    .rows;
  expect(JSON.parse(last?.entry ?? "")).toMatchObject({
    action: { type: "refuse" },
    after: { caller: "t1", count: 20 },
  });
});

it("retention deletes the oldest entries by age and by number, keeps the chain, and says so", async () => {
  for (let i = 0; i < 20; i++) await log.begin(facts()).finish(DONE);
  now += 11 * DAY_MS;
  for (let i = 0; i < 5; i++) await log.begin(facts()).finish(DONE);
  await log.keep();
  const rows = await database.all<{ seq: number; action: string }>(
    sql`SELECT seq, action FROM audit_entry WHERE account_id = 'a' ORDER BY seq`,
  );
  expect(rows.map(({ seq }) => seq)).toEqual([21, 22, 23, 24, 25, 26]);
  expect(rows.at(-1)?.action).toBe("prune");
  now += 30 * DAY_MS;
  await log.keep();
  // The newest entry stays, so that the chain continues.
  expect((await outcomes()).at(-1)).toBe("prune success");
});

it("an entry of a process whose clock was wrong does not make retention delete the entries before it", async () => {
  for (let i = 0; i < 3; i++) await log.begin(facts()).finish(DONE);
  const today = now;
  now = 1;
  await log.begin(facts()).finish(DONE);
  now = today;
  await log.begin(facts()).finish(DONE);
  await log.keep();
  expect(await outcomes()).toHaveLength(5);
});

it("concurrent writes have numbers without gaps", async () => {
  await Promise.all(Array.from({ length: 50 }, () => log.begin(facts()).finish(DONE)));
  const rows = await database.all<{ seq: number }>(sql`SELECT seq FROM audit_entry ORDER BY seq`);
  expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
});

it("a time range contains slow requests, whose numbers are higher than those of later ones", async () => {
  await log.begin(facts({ resourceId: "old" })).finish(DONE);
  now += 3_600_000;
  const slow = log.begin(facts({ resourceId: "slow" }));
  now += 60_000;
  for (const resourceId of ["b", "c"]) await log.begin(facts({ resourceId })).finish(DONE);
  await slow.finish(DONE);
  now += 3_600_000;
  await log.begin(facts({ resourceId: "young" })).finish(DONE);
  now -= 3_600_000;
  const reader = new AuditReader(database);
  const found = async (filter: AuditFilter) => {
    const { rows } = await reader.page("a", filter, { limit: 10, after: null, direction: "asc" });
    return rows.map(({ entry }) => (JSON.parse(entry) as { resource: { id: string } }).resource.id);
  };
  expect(await found({ since: now - 120_000 })).toEqual(["b", "c", "slow", "young"]);
  expect(await found({ since: now - 120_000, before: now + 1 })).toEqual(["b", "c", "slow"]);
  expect(await found({ since: now })).toEqual(["b", "c", "young"]);
  expect(await found({ before: now })).toEqual(["old", "slow"]);
});
