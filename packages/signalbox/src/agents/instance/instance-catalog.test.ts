import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrate } from "../../storage/migrate.ts";
import { rawSql } from "../../storage/ports/sql.ts";
import { SqliteDatabase } from "../../storage/sqlite/sqlite-database.ts";
import { InstanceCatalog } from "./instance-catalog.ts";

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

const ref = (name: string) => ({ agent: "a", name });

it("an instance is listed once, and what is due is found in order", async () => {
  await Promise.all([
    catalog.register(ref("x"), 1),
    catalog.register(ref("y"), 2),
    catalog.register(ref("x"), 3),
  ]);
  await Promise.all([catalog.setDue(ref("x"), 50), catalog.setDue(ref("y"), 40)]);
  expect((await catalog.list("a", { limit: 10 })).map(({ name }) => name)).toEqual(["x", "y"]);
  expect((await catalog.due(45, 10)).map(({ name }) => name)).toEqual(["y"]);
  expect(await catalog.nextDueAfter(45)).toBe(50);
  await catalog.setDue(ref("x"), null);
  expect(await catalog.nextDueAfter(45)).toBeNull();
});

it("what could not be written is written later, with what changed meanwhile", async () => {
  await catalog.register(ref("x"), 1);
  await database.run(rawSql("ALTER TABLE agent_instance RENAME TO hidden"));
  catalog.touch(ref("x"), 5);
  await expect(catalog.setDue(ref("x"), 70)).rejects.toThrow("no such table");
  catalog.touch(ref("x"), 6);
  await database.run(rawSql("ALTER TABLE hidden RENAME TO agent_instance"));
  await catalog.flush();
  expect(await catalog.find(ref("x"))).toMatchObject({ lastActiveAt: 6, nextDueAt: 70 });
});

it("100,000 instances are listed and searched page by page", async () => {
  await database.run(
    rawSql(`INSERT INTO agent_instance (agent, name, created_at, last_active_at)
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
      SELECT 'a', printf('name-%06d', i), i, i FROM n`),
  );
  expect((await catalog.list("a", { after: "name-050000", limit: 2 })).map(({ name }) => name)).toEqual([
    "name-050001",
    "name-050002",
  ]);
  expect(await catalog.list("a", { search: "E-0999", limit: 5000 })).toHaveLength(100);
  expect(await catalog.count("a")).toBe(100_000);
});
