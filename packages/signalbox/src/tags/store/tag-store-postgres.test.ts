import { afterAll, beforeAll } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { migrate } from "../../storage/migrate.ts";
import { rawSql } from "../../storage/ports/sql.ts";
import { PostgresDatabase } from "../../storage/postgres/postgres-database.ts";
import { describeTagStore } from "./tag-store-contract.ts";

let server: TestPostgres;
beforeAll(async () => {
  server = await openTestPostgres();
});
afterAll(() => server.drop());

describeTagStore("PostgreSQL", {
  runs: 20,
  resources: 1200,
  async open() {
    const database = await PostgresDatabase.open(server.url, (error) => {
      throw error;
    });
    for (const text of ["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"])
      await database.run(rawSql(text));
    await migrate(database);
    return database;
  },
});
