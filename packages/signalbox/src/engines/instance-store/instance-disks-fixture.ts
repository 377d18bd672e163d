/** Disks for tests: data folders that processes open, leave behind at a crash, and open again. */
import { cpSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { rawSql, sql } from "../../core/sql.ts";
import type { BaseSchema, InstanceDatabase, InstanceStore, InstanceStoreOptions } from "./instance-store.ts";
import { JournalStore } from "./journal/journal-store.ts";
import { type InstanceStoreEngine, openInstanceStore } from "./open-instance-store.ts";

const ROOMY = 2 ** 30;

/** Version 1 had the table `_base_old`. */
export const TEST_SCHEMA: BaseSchema = {
  version: 2,
  create: "CREATE TABLE _base_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
  upgrade: () => "ALTER TABLE _base_old RENAME TO _base_meta;",
};

export interface InstanceDisks {
  /** Contains all disks of the running test. */
  readonly folder: string;
  /** Starts a process with the given engine on the disk. The store is closed at the end of the test. */
  start(engine: TestedEngine, disk: string, options?: Partial<InstanceStoreOptions>): Promise<InstanceStore>;
  /** The same for the journal engine. */
  open(disk: string, segmentBytes?: number, onStall?: (error: Error) => void): JournalStore;
  /** Copies what a process that is killed now leaves on the disk. */
  copy(disk: string, to: string): void;
  journalOf(disk: string): string;
  /** Paths of the disk's files, relative to `folder`. */
  filesOf(disk: string, pattern: "*.db" | "*.db-wal"): string[];
}

/** Opens a store of an engine; the shared engine needs a PostgreSQL besides. */
export type OpenStore = (engine: TestedEngine, options: InstanceStoreOptions) => Promise<InstanceStore>;

export type TestedEngine = InstanceStoreEngine | "shared";

const openLocalStore: OpenStore = (engine, options) => {
  if (engine === "shared") throw new Error("the shared engine needs a PostgreSQL");
  return openInstanceStore(engine, options);
};

/** Fresh disks for each test of the file. */
export function useInstanceDisks(openStore: OpenStore = openLocalStore): InstanceDisks {
  let folder = "";
  let opened: InstanceStore[] = [];
  beforeEach(() => {
    opened = [];
    folder = mkdtempSync(join(tmpdir(), "signalbox-disks-"));
  });
  afterEach(async () => {
    for (const store of opened) await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const optionsFor = (disk: string, options: Partial<InstanceStoreOptions> = {}): InstanceStoreOptions => ({
    folder: join(folder, disk, "agents"),
    baseSchema: TEST_SCHEMA,
    reservedNames: ["_base"],
    segmentBytes: ROOMY,
    onFailure: fail,
    onStall: fail,
    ...options,
  });
  return {
    get folder() {
      return folder;
    },
    async start(engine, disk, options) {
      const store = await openStore(engine, optionsFor(disk, options));
      opened.push(store);
      return store;
    },
    open(disk, segmentBytes = ROOMY, onStall = fail) {
      const store = new JournalStore(optionsFor(disk, { segmentBytes, onStall }));
      opened.push(store);
      return store;
    },
    copy: (disk, to) => cpSync(join(folder, disk), join(folder, to), { recursive: true }),
    journalOf: (disk) => join(folder, disk, "agents/journal"),
    filesOf: (disk, pattern) => globSync(`${disk}/agents/??/${pattern}`, { cwd: folder }),
  };
}

/** Commits a row and waits for the sync. */
export async function writeRow(database: InstanceDatabase, value: number): Promise<void> {
  commitRow(database, value);
  await database.sync();
}

export function commitRow(database: InstanceDatabase, value: number): void {
  database.begin();
  database.run(rawSql("CREATE TABLE IF NOT EXISTS t (x INTEGER)"));
  database.run(sql`INSERT INTO t VALUES (${value})`);
  database.commit();
}

/** The rows of `writeRow` and `commitRow`, in order; none if there is no table. */
export function readRows(database: InstanceDatabase): number[] {
  if (database.get(sql`SELECT 1 FROM sqlite_schema WHERE name = 't'`) === undefined) return [];
  return database.all<{ x: number }>(rawSql("SELECT x FROM t ORDER BY rowid")).map(({ x }) => x);
}

/** Opens the database, reads its rows and closes the database. */
export async function rowsOf(store: InstanceStore, name: string): Promise<number[]> {
  const database = await store.open(name);
  const rows = readRows(database);
  await database.close();
  return rows;
}

function fail(error: Error): never {
  throw error;
}
