import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { rawSql, sql } from "../../core/sql.ts";
import { readRows, rowsOf, TEST_SCHEMA, useInstanceDisks, writeRow } from "./instance-disks-fixture.ts";
import type { InstanceStore } from "./instance-store.ts";

const NAME = "x";
const disks = useInstanceDisks();

describe.each(["journal", "plain"] as const)("a database of the %s engine", (engine) => {
  /** A store with one closed database. */
  async function startWithDatabase(): Promise<InstanceStore> {
    const store = await disks.start(engine, "one");
    const database = await store.open(NAME);
    await writeRow(database, 1);
    await database.close();
    return store;
  }

  /** Changes the file as another release would. */
  function change(statements: string): void {
    const file = new DatabaseSync(join(disks.folder, disks.filesOf("one", "*.db")[0] ?? ""));
    file.exec(statements);
    file.close();
  }

  it("that a later version wrote is refused and not changed", async () => {
    const store = await startWithDatabase();
    change("PRAGMA user_version = 999");
    await expect(store.open(NAME)).rejects.toThrow("has schema 999");
    change(`PRAGMA user_version = ${TEST_SCHEMA.version}`);
    expect(await rowsOf(store, NAME)).toEqual([1]);
  });

  it("that an earlier version wrote is upgraded", async () => {
    const store = await startWithDatabase();
    change("ALTER TABLE _base_meta RENAME TO _base_old; PRAGMA user_version = 1");
    const database = await store.open(NAME);
    expect(database.get(sql`SELECT count(*) AS n FROM _base_meta`)).toEqual({ n: 0 });
    expect(database.get(rawSql("PRAGMA user_version"))).toEqual({ user_version: TEST_SCHEMA.version });
    expect(readRows(database)).toEqual([1]);
    await database.close();
  });
});
