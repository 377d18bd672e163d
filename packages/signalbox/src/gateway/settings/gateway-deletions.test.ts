import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrate } from "../../database/migrate.ts";
import type { Database } from "../../database/database.ts";
import { sql } from "../../core/sql.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { GatewayDeletions } from "./gateway-deletions.ts";
import { Gateways } from "./gateways.ts";

let folder: string;
let database: Database;
let removed: string[];
let isFailing: boolean;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-gateways-"));
  database = await SqliteDatabase.open(join(folder, "test.db"), (error) => {
    throw error;
  });
  await migrate(database);
  await database.run(sql`INSERT INTO account (id, name, created_at) VALUES ('default', 'default', 0)`);
  removed = [];
  isFailing = false;
});
afterEach(async () => {
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

async function open(): Promise<{ gateways: Gateways; deletions: GatewayDeletions }> {
  const deletions = new GatewayDeletions(database, [
    async ({ gatewayId }) => void removed.push(`tokens of ${gatewayId}`),
    async ({ gatewayId }) => {
      if (isFailing) throw new Error("disk is full");
      removed.push(`calls of ${gatewayId}`);
    },
  ]);
  const gateways = new Gateways(database, { now: () => 1000 }, deletions);
  await gateways.load("default");
  return { gateways, deletions };
}

const records = () => database.all(sql`SELECT * FROM gateway_deletion`);

it("removes the record of a completed deletion", async () => {
  const { gateways } = await open();
  await gateways.delete("default", "default");
  expect(removed).toEqual(["tokens of default", "calls of default"]);
  expect(await records()).toEqual([]);
});

it("finishes an interrupted deletion at the next start, before the name can be used", async () => {
  const before = await open();
  isFailing = true;
  await expect(before.gateways.delete("default", "default")).rejects.toThrow("disk is full");
  expect(before.gateways.find("default", "default")).toBeUndefined();
  removed = [];
  isFailing = false;
  const after = await open();
  expect(after.gateways.find("default", "default")).toBeUndefined();
  await after.deletions.finishAll((_, error) => {
    throw error;
  });
  expect(removed).toEqual(["tokens of default", "calls of default"]);
  expect(await records()).toEqual([]);
});

it("does not create a gateway while data of the deleted one is left", async () => {
  const { gateways } = await open();
  isFailing = true;
  await expect(gateways.delete("default", "default")).rejects.toThrow("disk is full");
  await expect(gateways.create("default", "default", {})).rejects.toThrow("disk is full");
  isFailing = false;
  await gateways.create("default", "default", {});
  expect(removed.filter((what) => what.startsWith("calls"))).toEqual(["calls of default"]);
  // Nothing is removed from the new one later.
  removed = [];
  const { deletions } = await open();
  await deletions.finishAll(() => undefined);
  expect(removed).toEqual([]);
});

it("starts when a deletion still fails, and reports it", async () => {
  const { gateways } = await open();
  isFailing = true;
  await expect(gateways.delete("default", "default")).rejects.toThrow("disk is full");
  const failures: unknown[] = [];
  const { deletions } = await open();
  await deletions.finishAll((gateway, error) => failures.push([gateway.gatewayId, (error as Error).message]));
  expect(failures).toEqual([["default", "disk is full"]]);
  expect(await records()).toHaveLength(1);
});

it("keeps the gateway when its deletion cannot be recorded", async () => {
  const { gateways } = await open();
  await database.run(sql`DROP TABLE gateway_deletion`);
  await expect(gateways.delete("default", "default")).rejects.toThrow("gateway_deletion");
  expect(gateways.find("default", "default")).toBeDefined();
  expect(await database.all(sql`SELECT id FROM gateway`)).toEqual([{ id: "default" }]);
});

it("creates the default gateway at the first start only", async () => {
  const { gateways } = await open();
  expect(gateways.list("default")).toHaveLength(1);
  await gateways.delete("default", "default");
  expect((await open()).gateways.list("default")).toEqual([]);
});

it("runs changes of one name one after the other: the deletion of an old gateway does not remove a new one", async () => {
  const { gateways } = await open();
  const outcomes = await Promise.allSettled([
    gateways.delete("default", "default"),
    gateways.create("default", "default", { cache_ttl: 5 }),
    gateways.update("default", "default", { cache_ttl: 6 }),
    gateways.delete("default", "other"),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected"]);
  expect(removed).toEqual(["tokens of default", "calls of default"]);
  expect(gateways.find("default", "default")?.settings.cache_ttl).toBe(6);
  const twice = await Promise.allSettled([
    gateways.delete("default", "default"),
    gateways.delete("default", "default"),
    gateways.update("default", "default", {}),
  ]);
  expect(twice.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
  expect(gateways.find("default", "default")).toBeUndefined();
});
