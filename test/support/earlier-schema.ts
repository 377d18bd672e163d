/** A control-plane database of an earlier version, with only the migrations of that version. */
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import type { Database } from "../../packages/signalbox/src/database/database.ts";

const MIGRATIONS = join(import.meta.dirname, "../../packages/signalbox/src/database/migrations");
/** The last migration before instances belonged to accounts. */
export const BEFORE_ACCOUNTS_OF_INSTANCES = 9;

export async function migrateUpTo(database: Database, lastId: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-earlier-"));
  for (const file of await readdir(MIGRATIONS))
    if (Number(file.slice(0, 4)) <= lastId) await cp(join(MIGRATIONS, file), join(folder, file));
  await migrate(database, folder);
  await rm(folder, { recursive: true, force: true });
}
