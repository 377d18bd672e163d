/** Where a backup reads from: the parts of a running service, or a data folder that no process uses. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BASE_SCHEMA, RESERVED_NAMES } from "../../agents/index.ts";
import type { AreaModule } from "../../area-module.ts";
import { CLUSTER_SECRET, type Config, ConfigError, sharedSecrets } from "../../config/index.ts";
import { awakeSignal } from "../../core/awake-time.ts";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { DataFolder } from "../../database/sqlite/data-folder.ts";
import { SqliteDatabase } from "../../database/sqlite/sqlite-database.ts";
import { openInstanceStore } from "../../engines/instance-store/index.ts";
import { closeAll, type Closer } from "../close-all.ts";
import type { Storage } from "../storage.ts";
import { networkOf } from "../topology.ts";
import type { BackupSource } from "./create-backup.ts";
import { DATABASE_FILE } from "./folder-parts.ts";

const FLUSH = "backup.flush";
/** A node that does not answer is not waited for longer: what it has not written to PostgreSQL is about deliveries that are listed, and due times. */
const MAX_FLUSH_MS = 5000;
const NOTHING = new Uint8Array(0);

/** Throws `ConfigError` if the backup would not be complete. */
export function runningSource(
  config: Config,
  storage: Storage,
  areas: readonly AreaModule[],
): () => BackupSource {
  const { dataFolder, databases, callLog, topology } = storage;
  const network = networkOf(topology);
  const flush = async () => {
    await Promise.all([callLog.flush(), ...areas.map((area) => area.flush?.() ?? Promise.resolve())]);
    return NOTHING;
  };
  network?.serve(FLUSH, flush);
  return () => ({
    folder: dataFolder.path,
    stagingFolder: dataFolder.path,
    mustBeAlone: false,
    hasDatabase: config.databaseUrl === undefined,
    database: config.databaseUrl === undefined ? databases.backup : null,
    postgres: databaseOf(config),
    instances: topology.kind === "cluster" ? null : topology.instances,
    variables: variablesOf(config),
    async flush() {
      await flush();
      // See `MAX_FLUSH_MS`.
      await network?.askAll(FLUSH, NOTHING, awakeSignal(MAX_FLUSH_MS)).catch(() => undefined);
    },
  });
}

/** Locks the data folder. The caller calls `close` in the end. */
export async function stoppedSource(
  config: Config,
): Promise<{ readonly source: BackupSource; close(): Promise<void> }> {
  const closers: Closer[] = [];
  const fail = (error: Error): never => {
    throw error;
  };
  try {
    const hasDatabase = config.databaseUrl === undefined;
    // Before the lock, which would leave its file in a folder that is not one of Signalbox.
    if (hasDatabase && existsSync(config.dataDir) && !existsSync(join(config.dataDir, DATABASE_FILE)))
      throw new DataFolderError(`the data folder ${config.dataDir} has no database to back up`);
    // The data folder of a node has nothing that matters, and may be on another machine.
    const dataFolder = config.cluster === null ? DataFolder.openExisting(config.dataDir) : null;
    closers.push({ close: () => dataFolder?.close() });
    const database = hasDatabase
      ? await SqliteDatabase.open(join(config.dataDir, DATABASE_FILE), fail)
      : null;
    if (database !== null) closers.push({ close: () => database.close() });
    // Copies into the databases what a crash left in the journal.
    const instances =
      dataFolder === null
        ? null
        : await openInstanceStore("journal", {
            folder: dataFolder.file("agents"),
            baseSchema: BASE_SCHEMA,
            reservedNames: RESERVED_NAMES,
            segmentBytes: 64 * 1024,
            onFailure: fail,
            onStall: fail,
          });
    if (instances !== null) closers.push({ close: () => instances.close() });
    const source = {
      folder: config.dataDir,
      stagingFolder: dataFolder?.path ?? null,
      mustBeAlone: config.cluster === null,
      hasDatabase,
      database,
      postgres: databaseOf(config),
      instances,
      variables: variablesOf(config),
      flush: () => Promise.resolve(),
    };
    return { source, close: () => closeAll(closers, null) };
  } catch (error) {
    // The operator needs the first error.
    await closeAll(closers, null).catch(() => undefined);
    throw error;
  }
}

function databaseOf(config: Config): string | null {
  const { databaseUrl, agentStores, cluster } = config;
  if (databaseUrl === undefined) return null;
  const stores = new Set(cluster === null ? [] : agentStores.map((url) => url.reveal()));
  if (stores.size > 1 || (stores.size === 1 && !stores.has(databaseUrl.reveal())))
    throw new ConfigError(
      "agents.stores: the instances are on several servers, which have no common moment; back each of them up with pg_dump, the first one last",
    );
  return databaseUrl.reveal();
}

/** Secrets that the environment has: the backup does not contain them. */
function variablesOf(config: Config): string[] {
  // A generated secret of webhooks is a file of the data folder.
  const isFile = (name: string) => name === "WEBHOOK_SECRET" && config.webhookSecretFile !== undefined;
  return [
    ...sharedSecrets(config)
      .filter(({ variable, values }) => values.length > 0 && !isFile(variable))
      .map(({ variable }) => variable),
    ...(config.cluster === null ? [] : [CLUSTER_SECRET]),
  ];
}
