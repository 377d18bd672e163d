import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteConnection } from "../../engines/sqlite-file/connection.ts";
import { SqliteDatabase } from "./sqlite-database.ts";
import { describeDatabase } from "../database-contract.ts";

describeDatabase("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-sqlite-"));
  const path = join(folder, "test.db");
  const fail = (error: Error) => {
    throw error;
  };
  const database = await SqliteDatabase.open(path, fail, 1000);
  return {
    database,
    async lose() {
      const intruder = SqliteConnection.open(path);
      intruder.exec("BEGIN IMMEDIATE");
      return async () => intruder.close();
    },
    cleanUp: () => rm(folder, { recursive: true, force: true }),
  };
});
