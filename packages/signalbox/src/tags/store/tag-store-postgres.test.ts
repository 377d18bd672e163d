import { Client } from "pg";
import { afterAll, beforeAll } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { migrate } from "../../database/migrate.ts";
import { PostgresDatabase } from "../../database/postgres/postgres-database.ts";
import { describeTagStore } from "./contract/tag-store-contract.ts";

let server: TestPostgres;
beforeAll(async () => {
  server = await openTestPostgres();
});
afterAll(() => server.drop());

describeTagStore("PostgreSQL", {
  // Of the statements in this dialect; the runs on SQLite are those of the model.
  runs: 10,
  resources: 1200,
  async open() {
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    await client.end();
    const database = await PostgresDatabase.open(server.url, (error) => {
      throw error;
    });
    await migrate(database);
    return database;
  },
});
