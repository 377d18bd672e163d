/**
 * Restores a backup into a new data folder, and into an empty database of PostgreSQL if it has one.
 *
 * Invariants:
 * 1. The whole archive is read and compared with its hashes before anything is written.
 * 2. A restore that is interrupted leaves a folder on which no server starts, and a database of PostgreSQL that is empty. It can be repeated.
 * 3. A backup of an earlier version is migrated; one that this version cannot read is refused.
 */
import { BASE_SCHEMA } from "../../agents/index.ts";
import { ConfigError } from "../../config/index.ts";
import { knownChecksums, migrate } from "../../database/migrate.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { ArchiveError, ArchiveFile } from "../../engines/archive/index.ts";
import { VERSION } from "../../version.ts";
import { endFormerProcesses } from "./after-restore.ts";
import { DATABASE_FILE, FOLDER_ENTRY } from "./folder-parts.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { RestoreFolder } from "./restore-folder.ts";
import { type DamagedInstance, restoreCatalog } from "./restored-catalog.ts";

export interface RestoreOptions {
  readonly file: string;
  readonly dataDir: string;
  /** The connection string of an empty database; null to restore a backup of SQLite. */
  readonly databaseUrl: string | null;
  readonly mayReplace: boolean;
  /** After each entry. */
  readonly onProgress?: (done: number, all: number) => void;
}

export interface RestoredBackup {
  readonly manifest: Manifest;
  readonly replacedTo: string | null;
  /** Instances whose database was damaged before the backup. */
  readonly damaged: readonly DamagedInstance[];
}

/** Files that are written at the same time: their syncs share commits of the file system. */
const WRITERS = 16;

/** Reads the whole archive. Throws `ArchiveError` if it is damaged, or of a version that this one cannot restore. */
export async function verifyBackup(file: string): Promise<Manifest> {
  return (await openVerified(file)).manifest;
}

async function openVerified(file: string): Promise<{ archive: ArchiveFile; manifest: Manifest }> {
  const archive = await ArchiveFile.open(file);
  const manifest = readManifest(archive);
  checkVersions(file, manifest);
  await archive.verify();
  return { archive, manifest };
}

export async function restoreBackup(options: RestoreOptions): Promise<RestoredBackup> {
  const { file, dataDir, databaseUrl, mayReplace } = options;
  const { archive, manifest } = await openVerified(file);
  if (manifest.engine === "postgres" && databaseUrl === null)
    throw new ConfigError(
      `${file} is a backup of PostgreSQL: give the URL of an empty database with --database-url or DATABASE_URL`,
    );
  if (manifest.engine === "sqlite" && databaseUrl !== null)
    throw new ConfigError(
      `${file} is a backup of embedded SQLite, which cannot be restored into PostgreSQL: leave --database-url and DATABASE_URL out`,
    );
  const postgres = databaseUrl === null ? null : await import("./restore-postgres.ts");
  const target = databaseUrl === null ? null : await postgres?.openTarget(databaseUrl);
  try {
    const folder = RestoreFolder.begin(dataDir, mayReplace);
    try {
      await writeFiles(archive, folder, options);
      const now = Date.now();
      const agents = `${folder.path}/agents`;
      const damaged =
        target == null
          ? await finishSqlite(`${folder.path}/${DATABASE_FILE}`, agents, now)
          : await target.load(archive, manifest, { agents, now });
      folder.finish();
      return { manifest, replacedTo: folder.replacedTo, damaged };
    } finally {
      folder.close();
    }
  } finally {
    await target?.close();
  }
}

function checkVersions(file: string, manifest: Manifest): void {
  const known = knownChecksums();
  const unknown = manifest.migrations.find(({ id }) => !known.has(id));
  if (unknown !== undefined || manifest.instance_version > BASE_SCHEMA.version)
    throw new ArchiveError(
      `${file} was written by a later version (${manifest.version}) than this one (${VERSION}); upgrade, then restore`,
    );
  const changed = manifest.migrations.find(({ id, checksum }) => known.get(id) !== checksum);
  if (changed !== undefined)
    throw new ArchiveError(
      `${file} was written by version ${manifest.version}, whose migration ${changed.id} differs from that of this version`,
    );
}

async function writeFiles(
  archive: ArchiveFile,
  folder: RestoreFolder,
  options: RestoreOptions,
): Promise<void> {
  const names = archive.names.filter((name) => FOLDER_ENTRY.test(name));
  const rest = names.values();
  let done = 0;
  const write = async () => {
    for (const name of rest) {
      await folder.write(name, archive.read(name));
      options.onProgress?.(++done, names.length);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
}

async function finishSqlite(path: string, agents: string, now: number): Promise<DamagedInstance[]> {
  const database = await SqliteDatabase.open(path, (error) => {
    throw error;
  });
  try {
    await migrate(database);
    await database.transaction((tx) => endFormerProcesses(tx, now));
    return await restoreCatalog(database, agents, now);
  } finally {
    await database.close();
  }
}
