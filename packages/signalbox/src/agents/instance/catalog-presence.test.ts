/** The catalog entry of an instance that leaves memory, above all after a failure: its work must still be woken. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrate } from "../../database/migrate.ts";
import { rawSql } from "../../core/sql.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { CatalogPresence } from "./catalog-presence.ts";
import { InstanceCatalog } from "./instance-catalog.ts";
import { InstanceFigures } from "./instance-figures.ts";
import { ProblemIndex } from "./problem-index.ts";

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
  const index = new ProblemIndex({
    database,
    registered: () => catalog.flush(),
    isOwn: () => true,
    onFailure: (error) => {
      throw error;
    },
  });
  presence = new CatalogPresence(catalog, REF, { now: () => NOW }, new InstanceFigures(index, REF));
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
  await presence.load();
  presence.opened(NOW, false);
  presence.setDue(NOW + 500);
  expect(presence.leave(NOW, null)).toBe(NOW + 500);
  expect(await storedDueAt()).toBe(NOW);
  presence.closed();
  expect(await storedDueAt()).toBe(NOW + 500);
});

it("one that failed after its last work was done is woken, because the end of the work may not be stored", async () => {
  await presence.load();
  presence.opened(NOW, false);
  presence.setDue(NOW + 500);
  presence.setDue(null);
  expect(presence.leave(NOW, "storage")).toBe(NOW + 1000);
  presence.closed();
  expect(await storedDueAt()).toBe(NOW + 1000);
});

it("one that failed while clients are connected is woken, also without work: they may have missed its last state", async () => {
  await presence.load();
  presence.opened(NOW, false);
  expect(presence.leave(NOW, "storage", true)).toBe(NOW + 1000);
  presence.closed();
  expect(await storedDueAt()).toBe(NOW + 1000);
});

it("every sync waits for a due time that is being written", async () => {
  await presence.load();
  presence.opened(NOW, false);
  const order: string[] = [];
  presence.setDue(NOW + 500);
  void presence.settingDue?.then(() => order.push("due"));
  const sync = (name: string) => presence.withSync(() => Promise.resolve(void order.push(name)));
  await Promise.all([sync("first"), sync("second")]);
  expect(order).toEqual(["due", "first", "second"]);
  expect(presence.settingDue).toBe(null);
});

it("one that could not start keeps its due time, and is woken after a pause", async () => {
  await catalog.setDue(REF, 400);
  await presence.load();
  const wakeAt = presence.leave(NOW, "own");
  expect(wakeAt).toBeGreaterThan(NOW + 1000);
  presence.closed();
  expect(await storedDueAt()).toBe(wakeAt);
});

it("one whose storage was unavailable is woken soon", async () => {
  await catalog.setDue(REF, 400);
  await presence.load();
  expect(presence.leave(NOW, "storage")).toBe(NOW + 1000);
});

it("one that failed and has no work is not woken", async () => {
  await presence.load();
  expect(presence.leave(NOW, "own")).toBeNull();
  presence.closed();
  expect(await storedDueAt()).toBeNull();
});

it("one that could not read the catalog leaves its entry unchanged", async () => {
  await catalog.setDue(REF, 400);
  await database.run(rawSql("ALTER TABLE agent_instance RENAME TO hidden"));
  await expect(presence.load()).rejects.toThrow("no such table");
  expect(presence.leave(NOW, "own")).toBeGreaterThan(NOW + 1000);
  await database.run(rawSql("ALTER TABLE hidden RENAME TO agent_instance"));
  expect(await storedDueAt()).toBe(400);
});

it("one whose database is new has no work, even if the catalog has a due time", async () => {
  await catalog.setDue(REF, 400);
  await presence.load();
  presence.opened(NOW, true);
  expect(presence.leave(NOW, null)).toBeNull();
});

it("the due time is written before the database's sync begins, so that a crash in between leaves no work that is not woken", async () => {
  await presence.load();
  presence.opened(NOW, false);
  presence.setDue(NOW + 500);
  const seen: unknown[] = [];
  await presence.withSync(async () => {
    seen.push(await database.get(rawSql("SELECT next_due_at FROM agent_instance")));
  });
  expect(seen).toEqual([{ next_due_at: NOW }]);
});

it("a due time that cannot be written fails the sync, and the database's sync does not begin", async () => {
  await presence.load();
  presence.opened(NOW, false);
  await database.run(rawSql("ALTER TABLE agent_instance RENAME TO hidden"));
  presence.setDue(NOW + 500);
  let hasSynced = false;
  const synced = presence.withSync(async () => {
    hasSynced = true;
  });
  await expect(synced).rejects.toThrow("no such table");
  expect(hasSynced).toBe(false);
  await database.run(rawSql("ALTER TABLE hidden RENAME TO agent_instance"));
});
