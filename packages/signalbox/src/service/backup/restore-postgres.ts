/**
 * Restores the tables of a backup into an empty database of PostgreSQL, in one transaction: a restore that is interrupted leaves the database
 * empty.
 */
import type { Client } from "pg";
import { ConfigError } from "../../config/index.ts";
import { rawSql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import { migrate } from "../../database/migrate.ts";
import { createNodeTables } from "../../database/postgres/node-table.ts";
import { ownTables } from "../../database/postgres/own-tables.ts";
import { connectPlain } from "../../database/postgres/plain-client.ts";
import { asQueryable } from "../../database/postgres/postgres-pool.ts";
import { readTables, type TableShape } from "../../database/postgres/read-tables.ts";
import { copyFromChunks, quoteName } from "../../database/postgres/table-copy.ts";
import { ArchiveError, type ArchiveFile } from "../../engines/archive/index.ts";
import { createCallTables } from "../../engines/call-log/index.ts";
import { createSharedTables } from "../../engines/instance-store/index.ts";
import { describeFailure } from "../../engines/postgres-session/index.ts";
import { endFormerProcesses } from "./after-restore.ts";
import type { Manifest } from "./manifest.ts";
import { entryOf, TABLES_ENTRY } from "./postgres-parts.ts";
import { type DamagedInstance, restoreCatalog } from "./restored-catalog.ts";

export interface PostgresTarget {
  load(
    archive: ArchiveFile,
    manifest: Manifest,
    local: { readonly agents: string; readonly now: number },
  ): Promise<DamagedInstance[]>;
  close(): Promise<void>;
}

/** Throws `ConfigError` if the database cannot be reached or is not empty. */
export async function openTarget(url: string): Promise<PostgresTarget> {
  const client = await connectPlain(url).catch((cause: unknown) => {
    throw new ConfigError(`cannot connect to PostgreSQL: ${describeFailure(cause)}`, { cause });
  });
  try {
    const [found] = await readTables(client, ownTables());
    if (found !== undefined)
      throw new ConfigError(
        `the database is not empty (it has the table ${found.name}); create a new one with createdb, and give its URL`,
      );
  } catch (error) {
    await client.end();
    throw error;
  }
  return {
    load: (archive, manifest, local) => load(client, archive, manifest, local),
    close: () => client.end(),
  };
}

async function load(
  client: Client,
  archive: ArchiveFile,
  manifest: Manifest,
  { agents, now }: { readonly agents: string; readonly now: number },
): Promise<DamagedInstance[]> {
  const database = withinTransaction(client);
  const shapes = await readShapes(archive);
  await client.query("BEGIN");
  await createTables(client, database, manifest, shapes);
  for (const { name } of await readTables(client, ownTables())) {
    const shape = shapes.get(name);
    if (shape === undefined) continue;
    // Rows that the creation of the tables has written.
    await client.query(`DELETE FROM ${quoteName(name)}`);
    const columns = shape.columns.map(quoteName).join(", ");
    await copyFromChunks(client, `${quoteName(name)} (${columns})`, archive.read(entryOf(name)));
    shapes.delete(name);
  }
  const [unknown] = shapes.keys();
  if (unknown !== undefined)
    throw new ArchiveError(`${archive.path} has the table ${unknown}, which this version does not know`);
  for (const [name, last] of Object.entries(manifest.postgres?.sequences ?? {}))
    await client.query(
      "SELECT setval(c.oid::regclass, $2::bigint) FROM pg_class c WHERE c.oid = to_regclass($1)",
      [quoteName(name), last],
    );
  await migrate(database);
  await endFormerProcesses(database, now);
  // The next claim of an instance takes it over.
  if (await hasTable(client, "agent_owner")) await client.query("UPDATE agent_owner SET owner = NULL");
  const isShared = await hasTable(client, "agent_owner");
  const damaged = isShared ? [] : await restoreCatalog(database, agents, now);
  await client.query("COMMIT");
  return damaged;
}

async function createTables(
  client: Client,
  database: Database,
  manifest: Manifest,
  shapes: ReadonlyMap<string, TableShape>,
): Promise<void> {
  // Incarnations are never used twice: the amounts that former nodes held are found by them.
  await createNodeTables(client);
  await migrate(database, undefined, new Set(manifest.migrations.map(({ id }) => id)));
  if (shapes.has("call_log")) await createCallTables(database, client, manifest.postgres?.days ?? []);
  if (shapes.has("agent_owner")) await createSharedTables(client);
}

async function readShapes(archive: ArchiveFile): Promise<Map<string, TableShape>> {
  const chunks: Buffer[] = [];
  for await (const chunk of archive.read(TABLES_ENTRY)) chunks.push(chunk);
  const shapes = JSON.parse(Buffer.concat(chunks).toString()) as TableShape[];
  return new Map(shapes.map((shape) => [shape.name, shape]));
}

/** The connection's transaction as a database: what would be transactions are parts of it. */
function withinTransaction(client: Client): Database {
  const queryable = asQueryable(client, true);
  return {
    ...queryable,
    scan: queryable.all,
    engine: "postgres",
    problem: null,
    transaction: (work) => work(queryable),
    close: () => Promise.resolve(),
  };
}

async function hasTable(client: Client, name: string): Promise<boolean> {
  const row = await asQueryable(client, true).get<{ found: boolean }>(
    rawSql(`SELECT to_regclass('${name}') IS NOT NULL AS found`),
  );
  return row?.found === true;
}
