/** The two database engines of the control plane, migrated, for tests that run on both. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import type { Database } from "../../packages/signalbox/src/database/database.ts";
import { PostgresDatabase } from "../../packages/signalbox/src/database/postgres/postgres-database.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import { openTestPostgres } from "./test-postgres.ts";

export interface OpenedDatabase {
  readonly database: Database;
  /** Called after the database is closed. */
  drop(): Promise<void>;
}

export const ENGINES: readonly (readonly ["sqlite" | "postgres", () => Promise<OpenedDatabase>])[] = [
  ["sqlite", openSqlite],
  ["postgres", openPostgres],
];

export async function openSqlite(): Promise<OpenedDatabase> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-engine-"));
  const database = await SqliteDatabase.open(join(folder, "signalbox.db"), (error) => {
    throw error;
  });
  await migrate(database);
  return { database, drop: () => rm(folder, { recursive: true, force: true }) };
}

async function openPostgres(): Promise<OpenedDatabase> {
  const postgres = await openTestPostgres();
  const database = await PostgresDatabase.open(postgres.url, () => undefined);
  await migrate(database);
  return { database, drop: () => postgres.drop() };
}
