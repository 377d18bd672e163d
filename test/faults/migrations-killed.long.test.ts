/**
 * A process is killed during the migration of an earlier database, after each statement in turn. The earlier version is this one; migrations that the
 * test has made up follow: a column, a table that takes the rows and the name of another one, and an index.
 */
import { execFile } from "node:child_process";
import { copyFile, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import type { Database } from "../../packages/signalbox/src/database/database.ts";
import { rawSql } from "../../packages/signalbox/src/core/sql.ts";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { openTestPostgres } from "../support/test-postgres.ts";

const SCRIPT = join(import.meta.dirname, "../support/migrate-and-kill.ts");
const MIGRATIONS = join(import.meta.dirname, "../../packages/signalbox/src/database/migrations");
const LATER = {
  "9001-places.sql": "ALTER TABLE webhook_claim ADD COLUMN place TEXT NOT NULL DEFAULT 'here';",
  "9002-labels.sql": `
    CREATE TABLE labelled_instance (
      agent TEXT NOT NULL, name TEXT NOT NULL, label TEXT NOT NULL, next_due_at BIGINT, PRIMARY KEY (agent, name));
    INSERT INTO labelled_instance (agent, name, label, next_due_at)
      SELECT agent, name, account_id || '/' || name, next_due_at FROM agent_instance;
    DROP TABLE agent_instance;
    ALTER TABLE labelled_instance RENAME TO agent_instance;
    CREATE INDEX agent_instance_by_label ON agent_instance (label);`,
  "9003-marks.sql": `
    CREATE TABLE mark (id TEXT PRIMARY KEY);
    INSERT INTO mark (id) SELECT id FROM account;
    UPDATE webhook_claim SET place = 'there';`,
};
/** Number of concurrent processes; each only starts and is killed. */
const AT_ONCE = 3;

const rethrow = (error: Error): never => {
  throw error;
};

/** The signal that ended the process, or null if it finished. */
function migrateAndDie(folder: string, place: string, statements: number): Promise<NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [SCRIPT, folder, place, String(statements)], (error, _stdout, stderr) => {
      if (error !== null && error.signal == null) reject(new Error(stderr));
      else resolve(error?.signal ?? null);
    });
  });
}

/** A folder with the migrations of the later version. */
async function writeMigrations(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-later-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(MIGRATIONS, folder, { recursive: true });
  for (const [name, text] of Object.entries(LATER)) await writeFile(join(folder, name), text);
  return folder;
}

/** With a row in each table that the later version changes. */
async function fillEarlierTables(database: Database): Promise<void> {
  await migrate(database);
  for (const text of [
    "INSERT INTO account (id, name, created_at) VALUES ('default', 'Default', 1)",
    "INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at) VALUES ('default', 'a', 'x', 1, 2, 3)",
    "INSERT INTO webhook_claim (account_id, agent, name, entity) VALUES ('default', 'a', 'd-x', 'd/x')",
  ])
    await database.run(rawSql(text));
}

/** What must be there afterwards in all cases. */
async function read(database: Database): Promise<unknown> {
  return {
    migrations: await database.all(rawSql("SELECT id, name, checksum FROM schema_migrations ORDER BY id")),
    instances: await database.all(rawSql("SELECT * FROM agent_instance")),
    claims: await database.all(rawSql("SELECT * FROM webhook_claim")),
    marks: await database.all(rawSql("SELECT * FROM mark")),
  };
}

const readSchema = (database: Database) =>
  database.all(rawSql("SELECT type, name, sql FROM sqlite_master ORDER BY type, name"));

it("SQLite migrations start again after a kill at any statement", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-migrations-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const later = await writeMigrations();
  const earlier = join(folder, "earlier.db");
  const before = await SqliteDatabase.open(earlier, rethrow);
  await fillEarlierTables(before);
  await before.close();

  const migrateInProcess = async (file: string) => {
    const database = await SqliteDatabase.open(file, rethrow);
    await migrate(database, later);
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
      isOver = (await migrateAndDie(later, file, statements)) === null;
      if (!isOver) kills += 1;
      expect([statements, await migrateInProcess(file)]).toEqual([statements, wanted]);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, killer));
  // The statements of three files, and two rows for each.
  expect(kills).toBeGreaterThan(14);
});

it("PostgreSQL migrations start again after a kill at any statement", async () => {
  const postgres = await openTestPostgres();
  onTestFinished(() => postgres.drop());
  const before = await PostgresDatabase.open(postgres.url, rethrow);
  await fillEarlierTables(before);
  await before.close();
  const later = await writeMigrations();
  // PostgreSQL ends the session of a killed process after a while; until then the next process is refused.
  for (const statements of [2, 6, 12])
    await expect
      .poll(() => migrateAndDie(later, postgres.url, statements).catch(() => "refused"))
      .toBe("SIGKILL");
  let after: PostgresDatabase | null = null;
  await expect
    .poll(async () => (after = await PostgresDatabase.open(postgres.url, rethrow).catch(() => null)))
    .not.toBeNull();
  const database = after as unknown as PostgresDatabase;
  await migrate(database, later);
  expect(await read(database)).toMatchObject({
    instances: [{ agent: "a", name: "x", label: "default/x", next_due_at: 3 }],
    claims: [{ account_id: "default", entity: "d/x", place: "there" }],
    marks: [{ id: "default" }],
  });
  await database.close();
});
