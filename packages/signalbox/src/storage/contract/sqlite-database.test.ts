import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteDatabase } from "../sqlite/sqlite-database.ts";
import { describeDatabase } from "./database-contract.ts";

describeDatabase("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-sqlite-"));
  const database = await SqliteDatabase.open(join(folder, "test.db"), (error) => {
    throw error;
  });
  return { database, cleanUp: () => rm(folder, { recursive: true, force: true }) };
});
