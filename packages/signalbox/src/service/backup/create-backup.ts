/**
 * Writes a backup of a running or stopped service as one stream.
 *
 * Invariants:
 * 1. Everything that was acknowledged before the call is in the backup. What happens meanwhile may be in it.
 * 2. Each instance is copied as of one commit. While a copy waits for a slow client, nothing is locked and no instance is held.
 * 3. Temporary files are gone when the stream has ended, failed or was destroyed.
 */
import type { Queryable } from "../../core/queryable.ts";
import { type ArchivePart, writeArchive } from "../../engines/archive/index.ts";
import { BASE_SCHEMA } from "../../agents/index.ts";
import { VERSION } from "../../version.ts";
import { type FolderCounts, type FolderOptions, folderParts, type FolderSource } from "./folder-parts.ts";
import { FORMAT, type Manifest } from "./manifest.ts";
import type { DumpedTables } from "./postgres-parts.ts";
import { Staging } from "./staging.ts";
import { readMigrations } from "./stored-migrations.ts";

export interface BackupSource extends FolderSource {
  /** The embedded database; null with PostgreSQL. */
  readonly database: Queryable | null;
  /** The connection string of PostgreSQL; null without it. */
  readonly postgres: string | null;
  /** The data folder in which temporary files are written; null for a node of a cluster that is not of this machine. */
  readonly stagingFolder: string | null;
  /** With PostgreSQL: refuses if a node runs. Its instances may be in a data folder of another machine. */
  readonly mustBeAlone: boolean;
  /** Variables of the environment that a restored server needs. */
  readonly variables: readonly string[];
  /** Writes what is only in memory. */
  flush(): Promise<void>;
}

export type BackupOptions = FolderOptions;

export async function* createBackup(
  source: BackupSource,
  options: BackupOptions,
  createdAt: number = Date.now(),
): AsyncGenerator<Uint8Array> {
  const staging = await Staging.open(source.stagingFolder);
  try {
    await source.flush();
    const counts: FolderCounts = { instances: 0, call_log_days: 0, secrets: [] };
    const tables = source.postgres === null ? null : await dump(source, options, staging);
    const migrations = tables?.migrations ?? (await readMigrations(source.database));
    const describe = (): Manifest => ({
      product: "signalbox",
      format: FORMAT,
      version: VERSION,
      created_at: new Date(createdAt).toISOString(),
      engine: source.postgres === null ? "sqlite" : "postgres",
      migrations,
      instance_version: BASE_SCHEMA.version,
      includes: {
        call_logs: options.callLogs,
        secrets: counts.secrets,
        variables: [...source.variables],
      },
      counts: {
        instances: counts.instances + (tables?.instances ?? 0),
        call_log_days: counts.call_log_days + (tables?.days.length ?? 0),
        tables: tables?.parts.length ?? 0,
        rows: tables?.rows ?? 0,
      },
      ...(tables === null ? {} : { postgres: { sequences: tables.sequences, days: tables.days } }),
    });
    yield* writeArchive(partsOf(source, options, staging, counts, tables), describe, createdAt);
  } finally {
    await staging.remove();
  }
}

async function* partsOf(
  source: BackupSource,
  options: BackupOptions,
  staging: Staging,
  counts: FolderCounts,
  tables: DumpedTables | null,
): AsyncGenerator<ArchivePart> {
  if (tables !== null) yield* tables.parts;
  yield* folderParts(source, options, staging, counts);
}

/** Loaded on demand: most installations use SQLite. */
async function dump(
  { postgres, mustBeAlone }: BackupSource,
  { callLogs }: BackupOptions,
  staging: Staging,
): Promise<DumpedTables> {
  const { dumpPostgres } = await import("./postgres-parts.ts");
  return dumpPostgres(postgres ?? "", { callLogs, mustBeAlone }, staging);
}
