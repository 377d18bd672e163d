import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { Database } from "../../database/database.ts";
import { migrate } from "../../database/migrate.ts";
import { rawSql } from "../../core/sql.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { type DueEntry, type DueSelection, InstanceCatalog } from "./instance-catalog.ts";
import { InstancePages } from "./instance-pages.ts";

let folder: string;
let database: SqliteDatabase;
let catalog: InstanceCatalog;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-catalog-"));
  database = await SqliteDatabase.open(join(folder, "x.db"), (error) => {
    throw error;
  });
  await migrate(database);
  catalog = new InstanceCatalog(database);
});
afterEach(async () => {
  await catalog.close();
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

const ref = (name: string) => ({ account: "default", agent: "a", name });
const ALL: DueSelection = { agent: "a", account: null, without: new Set(), after: undefined };

it("an instance is listed once, and due instances are found in order", async () => {
  await Promise.all([
    catalog.register(ref("x"), 1),
    catalog.register(ref("y"), 2),
    catalog.register(ref("x"), 3),
  ]);
  await Promise.all([catalog.setDue(ref("x"), 50), catalog.setDue(ref("y"), 40)]);
  expect((await catalog.findMany("default", "a", ["x", "y"])).map(({ name }) => name)).toEqual(["x", "y"]);
  expect((await catalog.due(ALL, 45, 10)).map(({ name }) => name)).toEqual(["y"]);
  expect(await catalog.nextDueAfter("a", 45)).toBe(50);
  await catalog.setDue(ref("x"), null);
  expect(await catalog.nextDueAfter("a", 45)).toBeNull();
});

it("instances of the same name in different accounts are separate", async () => {
  const other = { ...ref("x"), account: "acme" };
  await Promise.all([catalog.register(ref("x"), 1), catalog.register(other, 2)]);
  await catalog.setDue(other, 60);
  expect(await catalog.find(ref("x"))).toMatchObject({ account: "default", createdAt: 1, nextDueAt: null });
  expect(await catalog.findMany("acme", "a", ["x"])).toEqual([
    expect.objectContaining({ account: "acme", name: "x", createdAt: 2, nextDueAt: 60 }),
  ]);
  await catalog.remove(other);
  expect(await catalog.count("acme", "a")).toBe(0);
  expect(await catalog.count("default", "a")).toBe(1);
});

it("due instances of one agent in all accounts are read page by page, even if many are due at the same time", async () => {
  await database.run(
    rawSql(`INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at)
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
      SELECT 'account-' || (i % 3), CASE WHEN i < 50 THEN 'a' ELSE 'gone' END, printf('name-%02d', i), 0, 0, 10 + i / 20 FROM n`),
  );
  const names: string[] = [];
  for (let after: DueEntry | undefined; ;) {
    const page = await catalog.due({ ...ALL, after }, 100, 7);
    names.push(...page.map(({ name }) => name));
    after = page.at(-1);
    if (page.length < 7) break;
  }
  expect(names).toHaveLength(50);
  expect(new Set(names).size).toBe(50);
  expect(names.slice(0, 20).toSorted().at(-1)).toBe("name-19");
  const own = await catalog.due({ ...ALL, account: "account-1" }, 100, 100);
  const others = await catalog.due({ ...ALL, without: new Set(["account-1"]) }, 100, 100);
  expect([own.length, others.length]).toEqual([17, 33]);
  expect(new Set([...own, ...others].map(({ name }) => name))).toEqual(new Set(names));
  for (const ofAccount of ["", "AND coalesce(account_id = 'account-1', false)"]) {
    const plan = await database.all<{ detail: string }>(
      rawSql(`EXPLAIN QUERY PLAN SELECT name FROM agent_instance WHERE agent = 'a' ${ofAccount} AND next_due_at <= 100
        AND (next_due_at, account_id, name) > (10, 'x', 'y') ORDER BY next_due_at, account_id, name LIMIT 7`),
    );
    expect(plan.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(
        /SEARCH agent_instance USING .*INDEX agent_instance_by_due \(agent=\? AND \(next_due_at,account_id,name\)>/,
      ),
    ]);
  }
});

it("changes that could not be written are written later, together with newer ones", async () => {
  await catalog.register(ref("x"), 1);
  await database.run(rawSql("ALTER TABLE agent_instance RENAME TO hidden"));
  catalog.touch(ref("x"), 5);
  await expect(catalog.setDue(ref("x"), 70)).rejects.toThrow("no such table");
  catalog.touch(ref("x"), 6);
  await database.run(rawSql("ALTER TABLE hidden RENAME TO agent_instance"));
  await catalog.flush();
  expect(await catalog.find(ref("x"))).toMatchObject({ lastActiveAt: 6, nextDueAt: 70 });
});

it("thousands of changes are written in transactions of a bounded size, at once when there are so many", async () => {
  const sizes: number[] = [];
  const counting: Database = {
    engine: "sqlite",
    problem: null,
    all: (query) => database.all(query),
    scan: (query, turn) => database.scan(query, turn),
    get: (query) => database.get(query),
    run: (query) => database.run(query),
    transaction: (work) =>
      database.transaction(async (tx) => {
        let rows = 0;
        const result = await work({
          all: (query) => tx.all(query),
          get: (query) => tx.get(query),
          run: async (query) => {
            const done = await tx.run(query);
            rows += done.changes;
            return done;
          },
        });
        sizes.push(rows);
        return result;
      }),
    close: () => Promise.resolve(),
  };
  const bulk = new InstanceCatalog(counting);
  const names = Array.from({ length: 1000 }, (_, i) => `n${i}`);
  await Promise.all(names.map((name) => bulk.register(ref(name), 1)));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(1000);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(200);
  // Nothing waits for these, and no timer has to end.
  for (const name of names) bulk.touch(ref(name), 7);
  const isWritten = async () => (await catalog.find(ref("n0")))?.lastActiveAt === 7;
  expect(await waitUntil(isWritten, (is) => is)).toBe(true);
  await bulk.close();
  expect(Math.max(...sizes)).toBeLessThanOrEqual(200);
  expect((await catalog.find(ref("n999")))?.lastActiveAt).toBe(7);
});

it("100,000 instances are listed and searched page by page", async () => {
  await database.run(
    rawSql(`INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at)
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
      SELECT 'default', 'a', printf('name-%06d', i), i, i FROM n`),
  );
  const pages = new InstancePages(database);
  const query = { account: "default", agent: "a", stuck: [], order: "name" } as const;
  const page = await pages.page({ ...query, cursor: "name-050000", limit: 2 });
  expect(page.entries.map(({ name }) => name)).toEqual(["name-050001", "name-050002"]);
  expect((await pages.page({ ...query, search: "E-0999", limit: 1000 })).entries).toHaveLength(100);
  expect(await catalog.count("default", "a")).toBe(100_000);
});

it("find returns changes that are not written yet", async () => {
  await catalog.register(ref("x"), 1);
  await catalog.setDue(ref("x"), 50);
  catalog.setDueLazily(ref("x"), null);
  catalog.touch(ref("x"), 9);
  expect(await catalog.find(ref("x"))).toMatchObject({ nextDueAt: null, lastActiveAt: 9 });
  const flushed = catalog.flush();
  expect(await catalog.find(ref("x"))).toMatchObject({ nextDueAt: null, lastActiveAt: 9 });
  catalog.setDueLazily(ref("x"), 70);
  expect((await catalog.find(ref("x")))?.nextDueAt).toBe(70);
  await flushed;
  expect((await catalog.find(ref("x")))?.nextDueAt).toBe(70);
  expect(await catalog.find(ref("y"))).toBeUndefined();
});

it("a due time that is set together with a second registration is stored", async () => {
  await catalog.register(ref("x"), 1);
  await Promise.all([catalog.register(ref("x"), 2), catalog.setDue(ref("x"), 30)]);
  expect(await catalog.nextDueAfter("a", 0)).toBe(30);
});
