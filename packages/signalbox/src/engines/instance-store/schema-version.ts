/** The version of a database's base tables, in `PRAGMA user_version`. */
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { BaseSchema } from "./instance-store.ts";

export function readVersion(connection: SqliteConnection): number {
  return Number(connection.prepare("PRAGMA user_version").all([])[0]?.["user_version"] ?? 0);
}

/** Upgrades a database of an earlier version; throws if a later release wrote the database. */
export function requireVersion(connection: SqliteConnection, schema: BaseSchema): void {
  const version = readVersion(connection);
  if (version === schema.version) return;
  if (version > schema.version) {
    throw new Error(
      `the instance's database has schema ${version}, but this release supports versions up to ${schema.version}`,
    );
  }
  connection.exec(
    `BEGIN IMMEDIATE; ${schema.upgrade(version)}; PRAGMA user_version = ${schema.version}; COMMIT`,
  );
}
