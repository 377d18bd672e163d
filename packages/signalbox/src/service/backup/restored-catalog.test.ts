/** When instances are looked at after a restore: their files say it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startTestServer } from "../../../../../test/support/test-server.ts";
import { sql } from "../../core/sql.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { recoverLocalInstances } from "../local-instances.ts";
import { restoreCatalog } from "./restored-catalog.ts";

const WORK_AGENTS = join(import.meta.dirname, "../../../../../test/fixtures/work-agents.ts");
const HOUR_MS = 3_600_000;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-restored-catalog-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it("instances are due when their work is, or at once if that time has passed, and those without work never", async () => {
  const server = await startTestServer({
    dataDir: folder,
    file: { agents: { modules: [WORK_AGENTS] } },
  });
  const plannedAt = Date.now();
  for (const [name, seconds] of [
    ["soon", 3600],
    ["later", 7200],
  ])
    expect((await server.api("POST", `/agents/worker/${name}/rpc/plan`, [seconds, "a"])).status).toBe(200);
  expect((await server.api("POST", "/agents/worker/idle/rpc/done", [])).status).toBe(200);
  await server.stop();
  await recoverLocalInstances(join(folder, "agents"));

  const restoredAt = plannedAt + 1.5 * HOUR_MS;
  const database = await SqliteDatabase.open(join(folder, "signalbox.db"), fail);
  await database.run(sql`UPDATE agent_instance SET next_due_at = 1`);
  expect(await restoreCatalog(database, join(folder, "agents"), restoredAt)).toEqual([]);
  const rows = await database.all<{ name: string; next_due_at: number | null }>(
    sql`SELECT name, next_due_at FROM agent_instance WHERE agent = 'worker'`,
  );
  await database.close();
  const due = Object.fromEntries(rows.map(({ name, next_due_at }) => [name, next_due_at]));
  expect(due).toMatchObject({ soon: restoredAt, idle: null });
  expect(due["later"]).toBeGreaterThanOrEqual(plannedAt + 2 * HOUR_MS);
});

function fail(error: Error): never {
  throw error;
}
