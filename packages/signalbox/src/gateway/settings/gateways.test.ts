import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { sql } from "../../core/sql.ts";
import { migrate } from "../../database/migrate.ts";
import { LocalSettings } from "../../database/shared-settings.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { GatewayDeletions } from "./gateway-deletions.ts";
import { Gateways } from "./gateways.ts";

async function openDatabase(): Promise<SqliteDatabase> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-gateways-"));
  const database = await SqliteDatabase.open(join(folder, "test.db"), () => undefined);
  onTestFinished(async () => {
    await database.close();
    await rm(folder, { recursive: true, force: true });
  });
  await migrate(database);
  await database.run(sql`INSERT INTO account (id, name, created_at) VALUES ('default', 'default', 0)`);
  return database;
}

it("only the first start writes: a node also starts while it cannot reach the others", async () => {
  const database = await openDatabase();
  const start = async () => {
    const settings = new LocalSettings(database);
    const write = vi.spyOn(settings, "write");
    const gateways = new Gateways(
      database,
      { now: () => 1000 },
      new GatewayDeletions(database, []),
      settings,
    );
    await gateways.load("default");
    return { gateways, writes: write.mock.calls.length };
  };
  const first = await start();
  expect([first.writes, first.gateways.list("default").length]).toEqual([1, 1]);
  const second = await start();
  expect([second.writes, second.gateways.list("default").length]).toEqual([0, 1]);
  // A default gateway that was deleted stays away.
  await second.gateways.delete("default", "default");
  const third = await start();
  expect([third.writes, third.gateways.list("default")]).toEqual([0, []]);
});

it("a change is answered when everything that follows it has followed it", async () => {
  const database = await openDatabase();
  const gateways = new Gateways(database, { now: () => 1000 }, new GatewayDeletions(database, []));
  await gateways.load("default");
  const followed = Promise.withResolvers<void>();
  const events: string[] = [];
  gateways.listen({
    onChanged: async () => {
      await followed.promise;
      events.push("followed");
    },
    onDeleted: () => undefined,
  });
  const change = gateways.update("default", "default", { cache_ttl: 5 }).then(() => events.push("answered"));
  await vi.waitUntil(() => gateways.find("default", "default")?.settings.cache_ttl === 5);
  followed.resolve();
  await change;
  expect(events).toEqual(["followed", "answered"]);
});

it("an account has at most 1,000 gateways, and another one is not concerned", async () => {
  const database = await openDatabase();
  await database.run(sql`INSERT INTO account (id, name, created_at) VALUES ('other', 'other', 0)`);
  await database.run(sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 998)
    INSERT INTO gateway (account_id, id, settings, is_default, created_at, modified_at)
    SELECT 'default', 'g' || i, '{}', 0, 0, 0 FROM n`);
  const gateways = new Gateways(database, { now: () => 1000 }, new GatewayDeletions(database, []));
  await gateways.load("default");
  await gateways.create("default", "last", {});
  await expect(gateways.create("default", "further", {})).rejects.toThrow("at most 1000 gateways");
  await gateways.create("other", "first", {});
  await gateways.delete("default", "g1");
  await gateways.create("default", "further", {});
});
