/**
 * Updates the schema of a database with the numbered files in `migrations/`.
 *
 * Invariants:
 * 1. Each file is applied once, in order. All files, with their rows in `schema_migrations`, are applied in one transaction.
 * 2. An applied file must not change, comments included: a different checksum is refused, because the schema of the database would be unknown.
 * 3. A database with an unknown migration was written by a newer version and is refused without changes.
 *
 * The SQL is written for both databases, with two constructs of SQLite: `BLOB`, which is replaced for PostgreSQL, and `WITHOUT ROWID`, which is
 * removed.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DataFolderError } from "../core/data-folder-error.ts";
import type { Database, Queryable } from "./database.ts";
import { rawSql, sql } from "../core/sql.ts";

interface Migration {
  readonly id: number;
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
}

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

export async function migrate(
  database: Database,
  folder: string = join(import.meta.dirname, "migrations"),
): Promise<void> {
  const migrations = readMigrations(folder);
  const update = async (tx: Queryable) => {
    await tx.run(
      rawSql(`CREATE TABLE IF NOT EXISTS schema_migrations
      (id BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`),
    );
    const applied = await tx.all<{ id: number; name: string; checksum: string }>(
      sql`SELECT id, name, checksum FROM schema_migrations ORDER BY id`,
    );
    const newest = migrations.at(-1)?.id ?? 0;
    for (const row of applied) {
      const known = migrations.find((migration) => migration.id === row.id);
      if (known === undefined) {
        throw new DataFolderError(
          `the database was written by a newer version (it has migration ${row.id}-${row.name}, this version knows up to ${newest}); upgrade, or use another data folder`,
        );
      }
      if (known.checksum !== row.checksum) {
        throw new DataFolderError(
          `migration ${row.id}-${row.name} differs from the one that was applied to this database`,
        );
      }
    }
    const done = new Set(applied.map((row) => row.id));
    for (const migration of migrations) {
      if (!done.has(migration.id)) await apply(tx, migration, database.engine);
    }
  };
  await database.transaction(update, { mayTakeLong: true });
}

function readMigrations(folder: string): Migration[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .map((file) => {
      const match = FILE_NAME.exec(file);
      if (match === null) throw new Error(`migration file ${file} is not named NNNN-name.sql`);
      const text = readFileSync(join(folder, file), "utf8");
      const checksum = createHash("sha256").update(text).digest("hex").slice(0, 16);
      return { id: Number(match[1]), name: match[2] ?? "", text, checksum };
    })
    .sort((a, b) => a.id - b.id);
}

async function apply(tx: Queryable, migration: Migration, engine: Database["engine"]): Promise<void> {
  const text = engine === "postgres" ? toPostgres(migration.text) : migration.text;
  for (const statement of splitStatements(text)) await tx.run(rawSql(statement));
  await tx.run(
    sql`INSERT INTO schema_migrations (id, name, checksum, applied_at)
        VALUES (${migration.id}, ${migration.name}, ${migration.checksum}, ${Date.now()})`,
  );
}

function toPostgres(text: string): string {
  return text.replaceAll(/\bBLOB\b/g, "BYTEA").replaceAll(/\bWITHOUT ROWID\b/g, "");
}

/** Splits at semicolons after removing comments. Migrations contain no string literal with a semicolon and no trigger. */
function splitStatements(text: string): string[] {
  return text
    .replaceAll(/--[^\n]*/g, "")
    .split(";")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}
