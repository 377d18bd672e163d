/** A data folder of an earlier version: entities keep their names and their instances. */
import { cp, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import { sql } from "../../packages/signalbox/src/core/sql.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { instanceNames } from "../support/instance-names.ts";
import { startTestServer } from "../support/test-server.ts";
import { SECRET, sendGithub } from "../support/webhook-sender.ts";

const MIGRATIONS = join(import.meta.dirname, "../../packages/signalbox/src/database/migrations");
/** The newest schema of the version before names were claimed per account. */
const LAST_OLD = 9;

it("name claims of an earlier version stay, whichever entity sends first", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-old-"));
  const oldMigrations = join(dataDir, "old-migrations");
  await mkdir(oldMigrations);
  for (const file of await readdir(MIGRATIONS)) {
    if (Number(file.slice(0, 4)) <= LAST_OLD) await cp(join(MIGRATIONS, file), join(oldMigrations, file));
  }
  const old = await SqliteDatabase.open(join(dataDir, "signalbox.db"), (error) => {
    throw error;
  });
  await migrate(old, oldMigrations);
  await old.run(
    sql`INSERT INTO webhook_entity (agent, name, entity) VALUES ('webhook-agent', 'a-b-c', 'a-b/c'), ('webhook-agent', 'x-y', 'x-y')`,
  );
  await old.close();
  const server = await startTestServer({ dataDir, environment: { GITHUB_WEBHOOK_SECRET: SECRET } });
  try {
    for (const repository of ["a/b-c", "a-b/c", "x/y"]) {
      expect((await sendGithub(server.url, { repository })).status).toBe(200);
    }
    expect((await instanceNames(dataDir)).sort()).toEqual(["a-b-c", "a_2fb-c", "x_2fy"]);
    const { body } = await server.api("GET", "/accounts/default/webhooks/deliveries");
    expect(body.result.map(({ instance }: { instance: string }) => instance)).toEqual([
      "x_2fy",
      "a-b-c",
      "a_2fb-c",
    ]);
  } finally {
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
});
