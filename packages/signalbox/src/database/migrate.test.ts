import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { migrate } from "./migrate.ts";
import { sql } from "../core/sql.ts";
import { SqliteDatabase } from "./sqlite/sqlite-database.ts";

let folder: string;
let database: SqliteDatabase;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-migrate-"));
  mkdirSync(join(folder, "sql"));
  database = await SqliteDatabase.open(join(folder, "x.db"), (error) => {
    throw error;
  });
});
afterEach(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

const write = (name: string, text: string) => writeFileSync(join(folder, "sql", name), text);
const run = () => migrate(database, join(folder, "sql"));
const tables = async () =>
  (
    await database.all<{ name: string }>(
      sql`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`,
    )
  ).map((row) => row.name);

it("applies numbered files in order, each once", async () => {
  write("0002-second.sql", "INSERT INTO a (n) VALUES (2);");
  write("0001-first.sql", "-- a comment; with a semicolon\nCREATE TABLE a (n BIGINT);");
  await run();
  write("0003-third.sql", "INSERT INTO a (n) VALUES (3);");
  await run();
  expect(await database.all(sql`SELECT n FROM a ORDER BY n`)).toEqual(
    [{ n: 2 }, { n: 3 }].map((row) => expect.objectContaining(row)),
  );
});

it("leaves the database unchanged if a file fails", async () => {
  write("0001-first.sql", "CREATE TABLE a (n BIGINT);");
  write("0002-broken.sql", "CREATE TABLE b (n BIGINT); CREATE TABLE nonsense nonsense;");
  await expect(run()).rejects.toThrow();
  expect(await tables()).toEqual([]);
});

it("refuses a database with an unknown or changed migration", async () => {
  write("0001-first.sql", "CREATE TABLE a (n BIGINT);");
  write("0002-second.sql", "CREATE TABLE b (n BIGINT);");
  await run();
  rmSync(join(folder, "sql", "0002-second.sql"));
  await expect(run()).rejects.toThrow("written by a newer version");
  write("0002-second.sql", "CREATE TABLE c (n BIGINT);");
  await expect(run()).rejects.toThrow("differs from the one that was applied");
});

it("accepts a newer database whose unknown migrations are compatible with this version", async () => {
  write("0001-first.sql", "CREATE TABLE a (n BIGINT);");
  write(
    "0002-second.sql",
    "-- compatible-from: 0001\n-- A column that nobody reads yet.\nALTER TABLE a ADD COLUMN m BIGINT;",
  );
  await run();
  rmSync(join(folder, "sql", "0002-second.sql"));
  await run();
  write(
    "0002-second.sql",
    "-- compatible-from: 0001\n-- A column that nobody reads yet.\nALTER TABLE a ADD COLUMN m BIGINT;",
  );
  // Drops what versions before the second migration use.
  write("0003-third.sql", "-- compatible-from: 0002\nALTER TABLE a DROP COLUMN n;");
  await run();
  rmSync(join(folder, "sql", "0003-third.sql"));
  await run();
  rmSync(join(folder, "sql", "0002-second.sql"));
  await expect(run()).rejects.toThrow("it has migration 3-third, this version knows up to 1");
});

it("refuses a file that claims to be compatible from a later migration", async () => {
  write("0001-first.sql", "-- compatible-from: 0002\nCREATE TABLE a (n BIGINT);");
  await expect(run()).rejects.toThrow("compatible from a later migration");
});

it("refuses a file without the name of a migration", async () => {
  write("first.sql", "SELECT 1;");
  await expect(run()).rejects.toThrow("not named NNNN-name.sql");
});
