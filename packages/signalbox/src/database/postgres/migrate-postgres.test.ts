import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { rawSql } from "../../core/sql.ts";
import { migrate } from "../migrate.ts";
import { PostgresDatabase } from "./postgres-database.ts";

let server: TestPostgres;
let folder: string;
beforeAll(async () => {
  server = await openTestPostgres();
  folder = mkdtempSync(join(tmpdir(), "signalbox-migrate-"));
});
afterAll(async () => {
  await server.drop();
  rmSync(folder, { recursive: true, force: true });
});

const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

async function openNode(name: string, schema: number): Promise<PostgresDatabase> {
  const database = await PostgresDatabase.open(server.url, () => undefined, {
    nodeName: name,
    version: `1.${schema}.0`,
    schema,
    heartbeatMs: 50,
    cluster: {
      secretCheck: "one",
      shared: [],
      linkVersions: { min: 1, max: 1 },
      openAddress: () => Promise.resolve({ host: "127.0.0.1", port: 1 }),
      onMembers: () => undefined,
      onRejoined: () => undefined,
    },
  });
  onTestFinished(() => database.close());
  return database;
}

it("applies a compatible migration beside nodes of an earlier version, and any other only without them", async () => {
  write("0001-first.sql", "CREATE TABLE a (n BIGINT);");
  const old = await openNode("old", 1);
  await migrate(old, folder);
  const next = await openNode("next", 3);
  write("0002-expand.sql", "-- compatible-from: 0001\nALTER TABLE a ADD COLUMN m BIGINT;");
  await migrate(next, folder);
  write("0003-contract.sql", "-- compatible-from: 0002\nALTER TABLE a DROP COLUMN n;");
  await expect(migrate(next, folder)).rejects.toThrow(
    "migration 3-contract cannot be applied while nodes run that cannot use the changed tables: old (version 1.1.0); stop them first",
  );
  // The earlier version works all the time.
  await old.run(rawSql("INSERT INTO a (n) VALUES (1)"));
  await old.close();
  await migrate(next, folder);
  await expect(openNode("old", 1)).rejects.toThrow(
    "the database has schema 2, and this version knows up to 1",
  );
  await openNode("middle", 2);
});

it("several nodes at once apply each file once", async () => {
  const nodes = await Promise.all(["a", "b", "c"].map((name) => openNode(name, 4)));
  write("0004-fourth.sql", "CREATE TABLE fourth (n BIGINT); INSERT INTO fourth VALUES (1);");
  await Promise.all(nodes.map((node) => migrate(node, folder)));
  expect(await nodes[0]?.all(rawSql("SELECT n FROM fourth"))).toEqual([{ n: 1 }]);
});
