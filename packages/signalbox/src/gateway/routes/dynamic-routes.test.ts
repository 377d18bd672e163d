import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { sql } from "../../core/sql.ts";
import { migrate } from "../../database/migrate.ts";
import { LocalSettings } from "../../database/shared-settings.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import type { Gateway } from "../settings/gateway.ts";
import { type DynamicRoute, DynamicRoutes, type DynamicRoutesParts } from "./dynamic-routes.ts";

const GRAPH = [
  { id: "s", type: "start", outputs: { next: { elementId: "e" } } },
  { id: "e", type: "end", outputs: {} },
];
const GATEWAY = { accountId: "a", id: "g" } as Gateway;

let database: SqliteDatabase;
let routes: DynamicRoutes;
let route: DynamicRoute;
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-routes-"));
  database = await SqliteDatabase.open(join(folder, "test.db"), () => undefined);
  onTestFinished(async () => {
    await database.close();
    await rm(folder, { recursive: true, force: true });
  });
  await migrate(database);
  await database.run(sql`INSERT INTO account (id, name, created_at) VALUES ('a', 'a', 0)`);
  await database.run(
    sql`INSERT INTO gateway (account_id, id, settings, is_default, created_at, modified_at) VALUES ('a', 'g', '{}', 0, 0, 0)`,
  );
  let now = 1000;
  routes = new DynamicRoutes({
    database,
    settings: new LocalSettings(database),
    clock: { now: () => now++ },
    providers: { find: () => ({}) },
  } as unknown as DynamicRoutesParts);
  await routes.load();
  route = await routes.create(GATEWAY, "r", GRAPH);
});

const versions = async () => (await routes.listVersions(GATEWAY, route.id)).map(({ id }) => id);

it("a route has its deployed version and the newest 100", async () => {
  const first = route.version.id;
  let newest = "";
  for (let i = 0; i < 110; i++) newest = (await routes.createVersion(GATEWAY, route.id, GRAPH)).id;
  const listed = await versions();
  expect([listed.length, listed[0], listed.at(-1)]).toEqual([101, newest, first]);
  await routes.deploy(GATEWAY, route.id, newest);
  await routes.createVersion(GATEWAY, route.id, GRAPH);
  expect(await versions()).toHaveLength(100);
  await expect(routes.deploy(GATEWAY, route.id, first)).rejects.toThrow("Version not found");
  expect(routes.get(GATEWAY, route.id).version.id).toBe(newest);
});

it("a version of a node whose clock is behind is kept", async () => {
  await database.run(sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
    INSERT INTO gateway_route_version (id, route_id, elements, created_at)
    SELECT 'later' || i, ${route.id}, '[]', 900000 + i FROM n`);
  const { id } = await routes.createVersion(GATEWAY, route.id, GRAPH);
  expect(await versions()).toContain(id);
  expect(await versions()).toContain(route.version.id);
});

it("a route has its newest 1,000 deployments", async () => {
  await database.run(sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
    INSERT INTO gateway_route_deployment (id, route_id, version_id, created_at)
    SELECT 'old' || i, ${route.id}, ${route.version.id}, i FROM n`);
  const { deployment } = await routes.deploy(GATEWAY, route.id, route.version.id);
  const listed = await routes.listDeployments(GATEWAY, route.id);
  expect(listed).toHaveLength(1000);
  expect(listed.map(({ id }) => id)).toContain(deployment.id);
});

it("an account has at most 1,000 routes, over all its gateways", async () => {
  await database.run(sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 998)
    INSERT INTO gateway_route (id, account_id, gateway_id, name, version_id, deployment_id, created_at, modified_at)
    SELECT 'id' || i, 'a', 'g', 'name-' || i, '', '', 0, 0 FROM n`);
  const last = await routes.create(GATEWAY, "last", GRAPH);
  const another = { accountId: "a", id: "g2" } as Gateway;
  await expect(routes.create(another, "further", GRAPH)).rejects.toThrow("at most 1000 dynamic routes");
  await routes.delete(GATEWAY, last.id);
  await routes.create(GATEWAY, "further", GRAPH);
});
