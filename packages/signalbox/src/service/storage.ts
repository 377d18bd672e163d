/** Opens the data folder, the database, the call log and the instances, and so decides what this process is (`Topology`). */
import { randomBytes } from "node:crypto";
import { openSecretFile } from "../accounts/index.ts";
import { BASE_SCHEMA, RESERVED_NAMES } from "../agents/index.ts";
import type { Config } from "../config/index.ts";
import { afterAwakeTime } from "../core/awake-time.ts";
import type { Clock } from "../core/clock.ts";
import { LocalSettings, type SharedSettings } from "../database/shared-settings.ts";
import { migrate } from "../database/migrate.ts";
import { DataFolder } from "../database/sqlite/data-folder.ts";
import { SqliteDatabase } from "../database/sqlite/sqlite-database.ts";
import type { CallLog } from "../engines/call-log/index.ts";
import { type LocalInstanceStore, openInstanceStore } from "../engines/instance-store/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { openCallLog } from "./call-log.ts";
import type { Closer } from "./close-all.ts";
import type { OpenedDatabase } from "./cluster.ts";
import { createDatabases, type Databases } from "./databases.ts";
import type { SharedAgentsOptions } from "./shared-agents.ts";
import { type Cluster, clusterOf, type Member, networkOf, nodeOf, type Topology } from "./topology.ts";

/** How long a step of the start may take without a line in the log. */
const QUIET_START_MS = 5000;

export interface StorageOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Must end the process: the durability of writes is unknown. */
  readonly onFatal: (error: Error) => void;
}

export interface Storage {
  readonly dataFolder: DataFolder;
  readonly databases: Databases;
  readonly settings: SharedSettings;
  readonly callLog: CallLog;
  readonly topology: Topology;
}

/** Adds every opened part to `closers`, even if a later part fails to open. */
export async function openStorage(
  options: StorageOptions,
  clock: Clock,
  closers: Closer[],
): Promise<Storage> {
  const announced = <T>(what: string, step: Promise<T>) => announce(options.logger, what, step);
  const dataFolder = DataFolder.open(options.config.dataDir);
  closers.push({ close: () => dataFolder.close() });
  const { database, membership, openSettings } = await openDatabase(options, dataFolder, closers);
  await announced("the migrations of the database, which another node may be applying", migrate(database));
  const databases = createDatabases(database);
  const settings = await openSettings(databases.settings);
  const callLog = await announced(
    "the call log",
    openCallLog({
      ...options,
      dataFolder,
      database: databases.callLog,
      network: networkOf(membership),
      clock,
    }),
  );
  closers.push({ close: () => callLog.close() });
  nodeOf(membership)?.onOtherServer(() => callLog.reconnect?.());
  const topology =
    membership.kind === "cluster"
      ? await announced(
          "the PostgreSQL of the instances (agents.stores)",
          openShared({ ...options, dataFolder }, membership),
        )
      : { ...membership, instances: await openLocalAgents(options, dataFolder) };
  closers.push({ close: () => topology.instances.close(), canStall: true });
  closers.push({ close: () => clusterOf(topology)?.report.close() });
  return { dataFolder, databases, settings, callLog, topology };
}

/** A supervisor, and who reads its log, should know what a start waits for. */
function announce<T>(logger: Logger, what: string, step: Promise<T>): Promise<T> {
  const cancel = afterAwakeTime(QUIET_START_MS, () => logger.warn(`the start waits for ${what}`));
  return step.finally(cancel);
}

async function openShared(options: SharedAgentsOptions, member: Member): Promise<Cluster> {
  const { openSharedAgents } = await import("./shared-agents.ts");
  return openSharedAgents(options, member);
}

async function openDatabase(
  options: StorageOptions,
  dataFolder: DataFolder,
  closers: Closer[],
): Promise<OpenedDatabase> {
  const { databaseUrl } = options.config;
  if (databaseUrl !== undefined) {
    const { openPostgres } = await import("./cluster.ts");
    return openPostgres(databaseUrl.reveal(), options, closers);
  }
  const database = await SqliteDatabase.open(dataFolder.file("signalbox.db"), options.onFatal);
  closers.push({ close: () => database.close() });
  return {
    database,
    membership: { kind: "single" },
    openSettings: async (audited) => new LocalSettings(audited),
  };
}

function openLocalAgents(
  { config, logger, onFatal }: StorageOptions,
  dataFolder: DataFolder,
): Promise<LocalInstanceStore> {
  const { store, journalFileBytes } = config.file.agents;
  return openInstanceStore(store, {
    folder: dataFolder.file("agents"),
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    segmentBytes: journalFileBytes,
    onFailure: onFatal,
    onStall: (error) => logger.error({ err: error }, "disk full: agent writes are paused"),
  });
}

const WEBHOOK_SECRET = "WEBHOOK_SECRET";

/**
 * Returns the configuration with a secret for generic webhooks: from the environment, or generated once and stored in the data folder. With
 * PostgreSQL no secret is generated: another machine with the same database would not have it.
 */
export function withWebhookSecret(config: Config, dataFolder: DataFolder): Config {
  if (config.environment[WEBHOOK_SECRET] || config.databaseUrl !== undefined) return config;
  const file = dataFolder.file("webhook-secret");
  const { text } = openSecretFile(file, () => randomBytes(32).toString("hex"));
  return {
    ...config,
    environment: { ...config.environment, [WEBHOOK_SECRET]: text },
    webhookSecretFile: file,
  };
}
