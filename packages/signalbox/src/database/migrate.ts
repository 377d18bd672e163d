/**
 * Updates the schema of a database with the numbered files in `migrations/`.
 *
 * Invariants:
 * 1. Each file is applied once, in order. All files, with their rows in `schema_migrations`, are applied in one transaction.
 * 2. An applied file must not change, comments included: a different checksum is refused, because the schema of the database would be unknown.
 * 3. A database with an unknown migration was written by a newer version. It is refused without changes, unless each unknown migration is
 *    marked as compatible with this version.
 * 4. A migration that running nodes of an earlier version cannot serve is refused while they run.
 * 5. Of several nodes that start together, one applies the files and the others wait.
 *
 * A file may begin with `-- compatible-from: 0023`: versions that know migration 23 can use the database after this file. Without the line
 * only versions that know the file itself can. CONTRIBUTING.md has the rules; see docs/decisions/0150.
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
import { CREATE_COMPATIBILITY } from "./schema-compatibility.ts";

interface Migration {
  readonly id: number;
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
  /** Versions that know this migration can use the database after it. */
  readonly needs: number;
}

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;
const MARK = /^-- compatible-from: (\d{4})$/m;
const FOLDER = join(import.meta.dirname, "migrations");

/** The newest migration that this version knows. */
export function newestMigration(): number {
  return readMigrations(FOLDER).at(-1)?.id ?? 0;
}

/** The checksums of the migrations that this version knows, by id. */
export function knownChecksums(): ReadonlyMap<number, string> {
  return new Map(readMigrations(FOLDER).map(({ id, checksum }) => [id, checksum]));
}

/** The names of the tables that migrations create. */
export function tablesOfMigrations(): ReadonlySet<string> {
  const text = readMigrations(FOLDER).map((migration) => migration.text);
  return new Set([...text.join("\n").matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name = ""]) => name));
}

/** `only`: the migrations to apply, to load rows of an earlier version; default all. */
export async function migrate(
  database: Database,
  folder: string = FOLDER,
  only: ReadonlySet<number> | null = null,
): Promise<void> {
  const migrations = readMigrations(folder);
  const update = async (tx: Queryable) => {
    await tx.run(
      rawSql(`CREATE TABLE IF NOT EXISTS schema_migrations
      (id BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`),
    );
    await tx.run(rawSql(CREATE_COMPATIBILITY));
    const applied = await tx.all<Applied>(
      sql`SELECT m.id, m.name, m.checksum, c.needs FROM schema_migrations m LEFT JOIN schema_compatibility c ON c.id = m.id ORDER BY m.id`,
    );
    checkApplied(applied, migrations);
    const done = new Set(applied.map((row) => row.id));
    const due = migrations.filter(({ id }) => !done.has(id) && only?.has(id) !== false);
    if (database.engine === "postgres") await refuseWhileEarlierVersionsRun(tx, due);
    for (const migration of due) await apply(tx, migration, database.engine);
  };
  await database.transaction(update, { scope: "migrations", mayTakeLong: true });
}

interface Applied {
  readonly id: number;
  readonly name: string;
  readonly checksum: string;
  /** Null if there is no mark: only versions that know the migration can use the database. */
  readonly needs: number | null;
}

function checkApplied(applied: readonly Applied[], migrations: readonly Migration[]): void {
  const newest = migrations.at(-1)?.id ?? 0;
  for (const row of applied) {
    const known = migrations.find((migration) => migration.id === row.id);
    if (known === undefined) {
      if (row.needs !== null && row.needs <= newest) continue;
      throw new DataFolderError(
        `the database was written by a newer version (it has migration ${row.id}-${row.name}, this version knows up to ${newest}); upgrade, or use another database`,
      );
    }
    if (known.checksum !== row.checksum) {
      throw new DataFolderError(
        `migration ${row.id}-${row.name} differs from the one that was applied to this database`,
      );
    }
  }
}

/** A node that joins after this check finds the migration when its own start has waited for this transaction. */
async function refuseWhileEarlierVersionsRun(tx: Queryable, due: readonly Migration[]): Promise<void> {
  const needs = Math.max(0, ...due.map((migration) => migration.needs));
  const running = await tx.all<{ name: string; version: string }>(
    sql`SELECT name, version FROM signalbox_node
        WHERE state <> 'dead' AND schema < ${needs} AND hb > clock_timestamp() - interval '2500 milliseconds' ORDER BY inc`,
  );
  if (running.length === 0) return;
  const names = running.map(({ name, version }) => `${name} (version ${version})`).join(", ");
  const first = due.find((migration) => migration.needs === needs);
  throw new DataFolderError(
    `migration ${first?.id}-${first?.name} cannot be applied while nodes run that cannot use the changed tables: ${names}; stop them first`,
  );
}

function readMigrations(folder: string): Migration[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .map((file) => {
      const match = FILE_NAME.exec(file);
      if (match === null) throw new Error(`migration file ${file} is not named NNNN-name.sql`);
      const text = readFileSync(join(folder, file), "utf8");
      const checksum = createHash("sha256").update(text).digest("hex").slice(0, 16);
      const id = Number(match[1]);
      const needs = Number(MARK.exec(text)?.[1] ?? id);
      if (needs > id) throw new Error(`migration file ${file} is compatible from a later migration`);
      return { id, name: match[2] ?? "", text, checksum, needs };
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
  await tx.run(
    sql`INSERT INTO schema_compatibility (id, needs) VALUES (${migration.id}, ${migration.needs})`,
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
