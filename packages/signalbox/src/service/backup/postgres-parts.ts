/**
 * The parts of a backup that are in PostgreSQL: all tables of Signalbox as of one moment. They are written to files before the first byte is sent: no
 * transaction stays open for a slow client.
 */
import type { Client } from "pg";
import { ConfigError } from "../../config/index.ts";
import { ownTables } from "../../database/postgres/own-tables.ts";
import { connectPlain } from "../../database/postgres/plain-client.ts";
import { asQueryable } from "../../database/postgres/postgres-pool.ts";
import { readSequences, readTables, type TableShape } from "../../database/postgres/read-tables.ts";
import { copyToFile, quoteName } from "../../database/postgres/table-copy.ts";
import { type ArchivePart, bytesPart, temporaryFilePart } from "../../engines/archive/index.ts";
import { describeFailure } from "../../engines/postgres-session/index.ts";
import type { StoredMigration } from "./manifest.ts";
import type { Staging } from "./staging.ts";
import { readMigrations } from "./stored-migrations.ts";

export interface DumpedTables {
  readonly parts: readonly ArchivePart[];
  readonly rows: number;
  /** Instances whose history is in PostgreSQL. */
  readonly instances: number;
  readonly migrations: StoredMigration[];
  readonly sequences: Record<string, string>;
  /** Starts of the days of the call log, in milliseconds. */
  readonly days: number[];
}

/** The list of the tables with their columns. */
export const TABLES_ENTRY = "postgres/tables.json";
export const entryOf = (table: string) => `postgres/${table}.copy`;

/** Rows of running nodes, of sessions, and what a restore writes itself. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "call_log_writer",
  "dashboard_session",
  "login_code",
  "schema_compatibility",
  "schema_migrations",
  "signalbox_cluster",
  "signalbox_node",
  "signalbox_node_write",
  "signalbox_settings",
  "signalbox_settings_change",
]);
const CALL_LOG = /^call_log/;
const INSTANCES = "agent_owner";

/** Throws `ConfigError` if the database cannot be reached, or is used by a node and must not be. */
export async function dumpPostgres(
  url: string,
  options: { readonly callLogs: boolean; readonly mustBeAlone: boolean },
  staging: Staging,
): Promise<DumpedTables> {
  const client = await connectPlain(url).catch((cause: unknown) => {
    throw new ConfigError(`cannot connect to PostgreSQL: ${describeFailure(cause)}`, { cause });
  });
  try {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    if (options.mustBeAlone) await refuseRunningNode(client);
    const isOwn = ownTables();
    const shapes = (await readTables(client, isOwn)).filter(
      ({ name }) => !LEFT_OUT.has(name) && (options.callLogs || !CALL_LOG.test(name)),
    );
    const parts: ArchivePart[] = [bytesPart(TABLES_ENTRY, Buffer.from(`${JSON.stringify(shapes)}\n`))];
    let rows = 0;
    let instances = 0;
    for (const shape of shapes) {
      const path = staging.newFile();
      const count = await copyToFile(client, selectOf(shape), path);
      rows += count;
      if (shape.name === INSTANCES) instances = count;
      parts.push(await temporaryFilePart(entryOf(shape.name), path));
    }
    const hasDays = shapes.some(({ name }) => name === "call_log_body");
    const days = hasDays ? await readDays(client) : [];
    const migrations = await readMigrations(asQueryable(client, true));
    return { parts, rows, instances, migrations, days, sequences: await readSequences(client) };
  } finally {
    await client.end();
  }
}

async function refuseRunningNode(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT name FROM signalbox_node WHERE state <> 'dead' AND hb > clock_timestamp() - interval '2500 milliseconds'",
  );
  const [running] = rows;
  if (running !== undefined)
    throw new ConfigError(
      `the server ${running.name} uses the database, and the instances of its agents are in its data folder; give its address with --url`,
    );
}

function selectOf({ name, columns }: TableShape): string {
  return `SELECT ${columns.map(quoteName).join(", ")} FROM ${quoteName(name)}`;
}

/** The partitions are created again for these days. A row may be of a day without a count: its partition tells. */
async function readDays(client: Client): Promise<number[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'call_log_body'::regclass AND NOT i.inhdetachpending ORDER BY c.relname`,
  );
  return rows.flatMap(({ name }) => {
    const [, year, month, day] = /_(\d{4})(\d{2})(\d{2})$/.exec(name) ?? [];
    return year === undefined ? [] : [Date.parse(`${year}-${month}-${day}T00:00:00Z`)];
  });
}
