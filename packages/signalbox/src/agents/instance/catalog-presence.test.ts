/** What the catalog is left with when an instance goes, above all one that failed: its work must not be forgotten. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrate } from "../../database/migrate.ts";
import { rawSql } from "../../core/sql.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { CatalogPresence } from "./catalog-presence.ts";
import { InstanceCatalog } from "./instance-catalog.ts";

const REF = { account: "default", agent: "a", name: "x" };
const NOW = 1_000_000;

let folder: string;
let database: SqliteDatabase;
let catalog: InstanceCatalog;
let presence: CatalogPresence;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-presence-"));
  database = await SqliteDatabase.open(join(folder, "x.db"), (error) => {
    throw error;
  });
  await migrate(database);
  catalog = new InstanceCatalog(database);
  await catalog.register(REF, 1);
  presence = new CatalogPresence(catalog, REF, { now: () => NOW });
});

afterEach(async () => {
  await catalog.close();
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

async function storedDueAt(): Promise<number | null | undefined> {
  await catalog.flush();
  return (await catalog.find(REF))?.nextDueAt;
}

it("an instance that leaves is woken when its work is due", async () => {
  await presence.look();
  presence.opened(NOW, false);
  presence.setDue(NOW + 500);
  expect(presence.leave(NOW, false)).toBe(NOW + 500);
  expect(await storedDueAt()).toBe(NOW + 500);
});

it("one that could not start keeps its work, and is woken for it after a pause", async () => {
  await catalog.setDue(REF, 400);
  await presence.look();
  const wakeAt = presence.leave(NOW, true);
  expect(wakeAt).toBeGreaterThan(NOW + 1000);
  expect(await storedDueAt()).toBe(wakeAt);
});

it("one that failed and has no work is not woken", async () => {
  await presence.look();
  expect(presence.leave(NOW, true)).toBeNull();
  expect(await storedDueAt()).toBeNull();
});

it("one that could not even ask leaves the catalog as it is", async () => {
  await catalog.setDue(REF, 400);
  await database.run(rawSql("ALTER TABLE agent_instance RENAME TO hidden"));
  await expect(presence.look()).rejects.toThrow("no such table");
  expect(presence.leave(NOW, true)).toBeGreaterThan(NOW + 1000);
  await database.run(rawSql("ALTER TABLE hidden RENAME TO agent_instance"));
  expect(await storedDueAt()).toBe(400);
});

it("one whose database is gone has no work, whatever the catalog says", async () => {
  await catalog.setDue(REF, 400);
  await presence.look();
  presence.opened(NOW, true);
  expect(presence.leave(NOW, false)).toBeNull();
});
