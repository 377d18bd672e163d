/** Opens a day file of any version. README.md: invariants 9 and 10. */
import { rawSql, sql } from "../../core/sql.ts";
import { keepPrivate, SqliteConnection } from "../sqlite-file/index.ts";
import { CREATE_TABLES, migrationSql, VERSION, viewSql } from "./day-schema.ts";

/**
 * Most bytes of the log are bodies of one to ten kilobytes. With pages of 16 KiB instead of 4 KiB, the writer needs a quarter of the system
 * calls and three quarters of the processor time for a call with two bodies of 1 KB (README.md, "Pages").
 */
const PAGE_BYTES = 16 * 1024;
/** The WAL is copied into the file when it has this size. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** The WAL is truncated to this size after a checkpoint, so that the file does not stay as large as its largest batch of bodies. */
const MAX_IDLE_WAL_BYTES = 4 * 1024 * 1024;
/** Pages that a reader keeps of each file. Three threads have a month of files open; the operating system caches the rest. */
const READER_CACHE_KB = 1024;
const USER_VERSION = rawSql("PRAGMA user_version");
const PAGE_SIZE = rawSql("PRAGMA page_size");
const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

export class LaterVersionError extends Error {
  constructor(path: string, version: number) {
    super(
      `${path} has version ${version}, this release reads versions up to ${VERSION}: start the release that wrote the file, or move the file away`,
    );
    this.name = "LaterVersionError";
  }
}

export interface ReadableDayFile {
  readonly connection: SqliteConnection;
  readonly version: number;
}

/**
 * For the writer; creates the file if there is none. A file of an earlier version stays as it is until `migrateDayFile`. Every commit is
 * synced: there are a few per second, on a thread of their own.
 */
export function openDayFile(path: string): SqliteConnection {
  keepPrivate(path);
  const connection = SqliteConnection.open(path);
  try {
    const version = versionOf(connection);
    if (version > VERSION) throw new LaterVersionError(path, version);
    // Both apply to an empty file only. Incremental vacuum shrinks a file a few pages at a time.
    connection.exec(`PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL;`);
    connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;");
    connection.exec(`PRAGMA journal_size_limit = ${MAX_IDLE_WAL_BYTES};`);
    connection.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_BYTES / pageBytesOf(connection)};`);
    if (version === 0) transaction(connection, () => connection.exec(CREATE_TABLES));
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Brings a file to the current version; one transaction, so a crash leaves the former version. */
export function migrateDayFile(connection: SqliteConnection): void {
  const version = versionOf(connection);
  if (version < VERSION) transaction(connection, () => connection.exec(migrationSql(version)));
}

/** For the reader; null if the file has a later version, or if the writer has just created it and its tables do not exist yet. */
export function openDayFileForReading(path: string): ReadableDayFile | null {
  const connection = SqliteConnection.open(path, { readOnly: true });
  const version = versionOf(connection);
  if (version === 0 || version > VERSION) {
    connection.close();
    return null;
  }
  connection.exec(`PRAGMA cache_size = -${READER_CACHE_KB}`);
  if (version < VERSION) connection.exec(viewSql(version));
  return { connection, version };
}

export function versionOf(connection: SqliteConnection): number {
  return connection.get<{ user_version: number }>(USER_VERSION)?.user_version ?? 0;
}

export function pageBytesOf(connection: SqliteConnection): number {
  return connection.get<{ page_size: number }>(PAGE_SIZE)?.page_size ?? PAGE_BYTES;
}

/** The number of a gateway in a file; undefined if the file has nothing of the gateway. */
export function findGatewayKey(
  connection: SqliteConnection,
  accountId: string,
  gatewayId: string,
): { key: number; rows: number } | undefined {
  return connection.get(
    sql`SELECT key, rows FROM gateway WHERE account_id = ${accountId} AND gateway_id = ${gatewayId}`,
  );
}

export function begin(connection: SqliteConnection): void {
  connection.run(BEGIN);
}

export function commit(connection: SqliteConnection): void {
  connection.run(COMMIT);
}

export function transaction<T>(connection: SqliteConnection, work: () => T): T {
  begin(connection);
  try {
    const result = work();
    commit(connection);
    return result;
  } catch (error) {
    connection.rollback();
    throw error;
  }
}
