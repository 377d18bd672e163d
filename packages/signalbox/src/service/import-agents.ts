/**
 * Brings the instances in the data folder of a process that was alone into the PostgreSQL of a cluster.
 *
 * Invariants:
 * 1. The folder is locked: no process uses it meanwhile.
 * 2. An instance that PostgreSQL has is left alone, so that an import that was interrupted can be repeated.
 * 3. Each file is checked before, and compared with what PostgreSQL returns afterwards. The files stay; when all of them are in PostgreSQL, their
 *    folder is renamed, and the process may start as a node.
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { hash } from "node:crypto";
import { BASE_SCHEMA, databaseName, RESERVED_NAMES } from "../agents/index.ts";
import type { Config } from "../config/index.ts";
import { checkCluster, ConfigError } from "../config/index.ts";
import { DataFolderError } from "../core/data-folder-error.ts";
import { sql } from "../core/sql.ts";
import type { Database } from "../database/database.ts";
import { migrate } from "../database/migrate.ts";
import { DataFolder } from "../database/sqlite/data-folder.ts";
import {
  InstanceElsewhereError,
  openSharedStore,
  type SharedInstanceStore,
} from "../engines/instance-store/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { closeAll, type Closer } from "./close-all.ts";
import { openPostgres } from "./cluster.ts";
import {
  listLocalInstances,
  type LocalInstance,
  readLocalInstance,
  recoverLocalInstances,
} from "./local-instances.ts";

/** Hexadecimal digits of an instance's file name. */
const ID_DIGITS = 40;

export interface ImportAgentsOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** The data folder of the process that was alone. */
  readonly folder: string;
  /** After each file. */
  readonly onProgress?: (done: number, all: number) => void;
}

export interface ImportedAgents {
  readonly imported: number;
  /** They were in PostgreSQL before. */
  readonly kept: number;
  readonly failed: readonly { readonly file: string; readonly reason: string }[];
  /** What the folder with the files is called now; null if files failed. */
  readonly renamedTo: string | null;
}

export async function importAgents(options: ImportAgentsOptions): Promise<ImportedAgents> {
  const closers: Closer[] = [];
  try {
    return await run(options, closers);
  } finally {
    await closeAll(closers, null);
  }
}

async function run(options: ImportAgentsOptions, closers: Closer[]): Promise<ImportedAgents> {
  const { config, logger, folder } = options;
  if (config.cluster === null || config.databaseUrl === undefined)
    throw new ConfigError(
      "DATABASE_URL and SIGNALBOX_CLUSTER_SECRET: expected those of the cluster, found none",
    );
  checkCluster(config);
  if (!existsSync(folder)) throw new DataFolderError(`the folder ${folder} does not exist`);
  const dataFolder = DataFolder.open(folder);
  closers.push({ close: () => dataFolder.close() });
  const agents = dataFolder.file("agents");
  if (!existsSync(agents)) throw new DataFolderError(`the data folder ${folder} has no instances to import`);
  await recoverLocalInstances(agents);
  const fail = (error: unknown): never => {
    throw error;
  };
  const { database, membership } = await openPostgres(
    config.databaseUrl.reveal(),
    { config, logger, onFatal: fail },
    closers,
  );
  // This process takes no instances of others.
  await membership.node.session.drain();
  await migrate(database);
  const cache = dataFolder.file("agents-import");
  const store = await openSharedStore({
    folder: cache,
    stores: config.agentStores.map((url) => url.reveal()),
    maxCacheBytes: 0,
    nodes: {
      get self() {
        return membership.node.incarnation;
      },
      isLeaseFresh: false,
      readLiving: async () => new Set(await database.readLivingNodes()),
    },
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    onFailure: fail,
    onStall: fail,
    onError: fail,
  });
  closers.push({
    close: async () => {
      await store.close();
      rmSync(cache, { recursive: true, force: true });
    },
  });
  return importAll(options, agents, { store, database });
}

interface Target {
  readonly store: SharedInstanceStore;
  readonly database: Database;
}

async function importAll(
  { onProgress }: ImportAgentsOptions,
  folder: string,
  target: Target,
): Promise<ImportedAgents> {
  const files = listLocalInstances(folder);
  const failed: { file: string; reason: string }[] = [];
  let imported = 0;
  let kept = 0;
  for (const [i, file] of files.entries()) {
    try {
      if (await importOne(file, target)) imported += 1;
      else kept += 1;
    } catch (error) {
      failed.push({ file, reason: error instanceof Error ? error.message : String(error) });
    }
    onProgress?.(i + 1, files.length);
  }
  return { imported, kept, failed, renamedTo: failed.length > 0 ? null : rename(folder) };
}

/** False if PostgreSQL has the instance. */
async function importOne(file: string, { store, database }: Target): Promise<boolean> {
  const instance = readLocalInstance(file, (name) => hash("sha256", name, "hex").slice(0, ID_DIGITS));
  const isImported = await store.importFile(databaseName(instance.ref), file).catch((error: unknown) => {
    // It runs on a node.
    if (error instanceof InstanceElsewhereError) return false;
    throw error;
  });
  await addToCatalog(database, instance);
  return isImported;
}

/** An entry of PostgreSQL without a node is from the time when one process used the database alone. */
async function addToCatalog(
  database: Database,
  { ref, createdAt, lastActiveAt, nextDueAt }: LocalInstance,
): Promise<void> {
  const dueAt = nextDueAt === null ? null : Math.max(nextDueAt, Date.now());
  await database.run(
    sql`INSERT INTO agent_instance (account_id, agent, name, created_at, last_active_at, next_due_at, node, epoch)
        VALUES (${ref.account}, ${ref.agent}, ${ref.name}, ${createdAt}, ${lastActiveAt}, ${dueAt}, 0, 0)
        ON CONFLICT (account_id, agent, name) DO UPDATE SET node = 0, next_due_at = excluded.next_due_at
        WHERE agent_instance.node IS NULL`,
  );
}

function rename(folder: string): string {
  let target = `${folder}-imported`;
  for (let i = 2; existsSync(target); i++) target = `${folder}-imported-${i}`;
  renameSync(folder, target);
  return target;
}
