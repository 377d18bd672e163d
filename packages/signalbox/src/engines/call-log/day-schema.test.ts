/** The generated tables against the text of the versions that were released. */
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { CREATE_TABLES, migrationSql, VERSION, viewSql } from "./day-schema.ts";
import { VERSION_1_SCHEMA } from "./version-1-fixture.ts";

const TABLES = ["gateway", "call", "body", "hourly", "totals", "totals_delta"];

/** The columns of every table, sorted by name: a migration appends columns. */
function columnsOf(...statements: readonly string[]): unknown {
  const file = new DatabaseSync(":memory:");
  for (const statement of statements) file.exec(statement);
  const columns = TABLES.map((table) =>
    file
      .prepare(`SELECT name, type, "notnull", pk FROM main.pragma_table_info('${table}') ORDER BY name`)
      .all(),
  );
  file.close();
  return columns;
}

it("creates the tables of version 1, or those that a migration from version 1 leads to", () => {
  expect(columnsOf(CREATE_TABLES)).toEqual(columnsOf(VERSION_1_SCHEMA, migrationSql(1)));
});

it("sets the version in new and migrated files", () => {
  for (const statements of [[CREATE_TABLES], [VERSION_1_SCHEMA, migrationSql(1)]]) {
    const file = new DatabaseSync(":memory:");
    for (const statement of statements) file.exec(statement);
    expect(file.prepare("PRAGMA user_version").get()).toEqual({ user_version: VERSION });
    file.close();
  }
});

it("reads a file of version 1 through views", () => {
  const file = new DatabaseSync(":memory:");
  file.exec(VERSION_1_SCHEMA);
  file.exec(viewSql(1));
  expect(file.prepare("SELECT * FROM call").all()).toEqual([]);
  file.close();
});
