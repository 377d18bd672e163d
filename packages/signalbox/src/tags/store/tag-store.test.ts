import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { migrate } from "../../database/migrate.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { describeTagStore } from "./contract/tag-store-contract.ts";

const folder = mkdtempSync(join(tmpdir(), "signalbox-tags-"));
let count = 0;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeTagStore("SQLite", {
  runs: 250,
  resources: 5000,
  async open() {
    const database = await SqliteDatabase.open(join(folder, `${count++}.db`), (error) => {
      throw error;
    });
    await migrate(database);
    return database;
  },
});
