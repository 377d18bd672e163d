/** A process is killed during the migration of an earlier database, after each statement in turn. */
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import type { Database } from "../../packages/signalbox/src/database/database.ts";
import { rawSql } from "../../packages/signalbox/src/core/sql.ts";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { BEFORE_ACCOUNTS_OF_INSTANCES, migrateUpTo } from "../support/earlier-schema.ts";
import { openTestPostgres } from "../support/test-postgres.ts";

const SCRIPT = join(import.meta.dirname, "../support/migrate-and-kill.ts");
/** Number of concurrent processes; each only starts and is killed. */
const AT_ONCE = 3;

const rethrow = (error: Error): never => {
  throw error;
};

/** The signal that ended the process, or null if it finished. */
function migrateAndDie(place: string, statements: number): Promise<NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [SCRIPT, place, String(statements)], (error, _stdout, stderr) => {
      if (error !== null && error.signal == null) reject(new Error(stderr));
      else resolve(error?.signal ?? null);
    });
  });
}

/** With a row in each table that is changed. */
async function fillEarlierTables(database: Database): Promise<void> {
  await migrateUpTo(database, BEFORE_ACCOUNTS_OF_INSTANCES);
  for (const text of [
    "INSERT INTO account (id, name, created_at) VALUES ('default', 'Default', 1)",
    "INSERT INTO agent_instance (agent, name, created_at, last_active_at, next_due_at) VALUES ('a', 'x', 1, 2, 3)",
    "INSERT INTO webhook_entity (agent, name, entity) VALUES ('a', 'd-x', 'd/x')",
  ])
    await database.run(rawSql(text));
}

/** What must be there afterwards in all cases. */
async function read(database: Database): Promise<unknown> {
  return {
    migrations: await database.all(rawSql("SELECT id, name, checksum FROM schema_migrations ORDER BY id")),
    instances: await database.all(rawSql("SELECT * FROM agent_instance")),
    claims: await database.all(rawSql("SELECT * FROM webhook_claim")),
    firstStart: await database.all(rawSql("SELECT * FROM first_start")),
    late: await database.all(rawSql("SELECT * FROM webhook_late_delivery")),
  };
}

const readSchema = (database: Database) =>
  database.all(rawSql("SELECT type, name, sql FROM sqlite_master ORDER BY type, name"));

it("SQLite migrations start again after a kill at any statement", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-migrations-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const earlier = join(folder, "earlier.db");
  const before = await SqliteDatabase.open(earlier, rethrow);
  await fillEarlierTables(before);
  await before.close();

  const migrateInProcess = async (file: string) => {
    const database = await SqliteDatabase.open(file, rethrow);
    await migrate(database);
    const found = [await read(database), await readSchema(database)];
    const whole = await database.all(rawSql("PRAGMA integrity_check"));
    await database.close();
    expect(whole).toEqual([expect.objectContaining({ integrity_check: "ok" })]);
    return found;
  };
  const expected = join(folder, "expected.db");
  await copyFile(earlier, expected);
  const wanted = await migrateInProcess(expected);

  let next = 1;
  let kills = 0;
  const killer = async () => {
    for (let isOver = false; !isOver;) {
      const statements = next++;
      const file = join(folder, `killed-${statements}.db`);
      await copyFile(earlier, file);
      isOver = (await migrateAndDie(file, statements)) === null;
      if (!isOver) kills += 1;
      expect([statements, await migrateInProcess(file)]).toEqual([statements, wanted]);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, killer));
  // The statements of four files, and a row for each.
  expect(kills).toBeGreaterThan(15);
  // One process for each statement of all later migrations.
});

it("PostgreSQL migrations start again after a kill at any statement", async () => {
  const postgres = await openTestPostgres();
  onTestFinished(() => postgres.drop());
  const before = await PostgresDatabase.open(postgres.url, rethrow);
  await fillEarlierTables(before);
  await before.close();
  // PostgreSQL ends the session of a killed process after a while; until then the next process is refused.
  for (const statements of [2, 6, 12])
    await expect.poll(() => migrateAndDie(postgres.url, statements).catch(() => "refused")).toBe("SIGKILL");
  let after: PostgresDatabase | null = null;
  await expect
    .poll(async () => (after = await PostgresDatabase.open(postgres.url, rethrow).catch(() => null)))
    .not.toBeNull();
  const database = after as unknown as PostgresDatabase;
  await migrate(database);
  expect(await read(database)).toMatchObject({
    instances: [{ account_id: "default", agent: "a", name: "x", next_due_at: 3 }],
    claims: [{ account_id: "default", entity: "d/x" }],
    firstStart: [{ name: "default_gateway" }],
    late: [],
  });
  await database.close();
});
