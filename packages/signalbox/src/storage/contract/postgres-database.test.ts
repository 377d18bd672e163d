import { expect, it } from "vitest";
import { openTestPostgres } from "../../../../../test/support/test-postgres.ts";
import { PostgresDatabase } from "../postgres/postgres-database.ts";
import { describeDatabase } from "./database-contract.ts";

const rethrow = (error: Error): never => {
  throw error;
};

describeDatabase("PostgreSQL", async () => {
  const { url, drop } = await openTestPostgres();
  return { database: await PostgresDatabase.open(url, rethrow), cleanUp: drop };
});

it("refuses a database that another process already serves from", async () => {
  const { url, drop } = await openTestPostgres();
  const first = await PostgresDatabase.open(url, rethrow);
  await expect(PostgresDatabase.open(url, rethrow)).rejects.toThrow("in use by another Signalbox process");
  await first.close();
  const second = await PostgresDatabase.open(url, rethrow);
  await second.close();
  await drop();
});

it("says in one line that the server cannot be reached", async () => {
  await expect(PostgresDatabase.open("postgres://u:p@127.0.0.1:1/x", rethrow)).rejects.toThrow(
    /^cannot connect to PostgreSQL: /,
  );
});
