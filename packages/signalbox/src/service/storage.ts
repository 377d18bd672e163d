/** Opens the data folder, the database, the call log and the instance store. */
import { randomBytes } from "node:crypto";
import { openSecretFile } from "../accounts/index.ts";
import { AuditedDatabase } from "../audit/index.ts";
import { BASE_SCHEMA, type OpenRemote, RESERVED_NAME } from "../agents/index.ts";
import type { ClusterNode, Lease } from "../cluster/index.ts";
import type { Config } from "../config/index.ts";
import { afterAwakeTime } from "../core/awake-time.ts";
import type { Clock } from "../core/clock.ts";
import type { Database } from "../database/database.ts";
import { LocalSettings, type SharedSettings } from "../database/shared-settings.ts";
import { migrate } from "../database/migrate.ts";
import { DataFolder } from "../database/sqlite/data-folder.ts";
import { SqliteDatabase } from "../database/sqlite/sqlite-database.ts";
import type { CallLog } from "../engines/call-log/index.ts";
import {
  type InstanceStore,
  type LocalInstanceStore,
  openInstanceStore,
  type Ownership,
} from "../engines/instance-store/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { openCallLog } from "./call-log.ts";
import type { Closer } from "./close-all.ts";
import type { ClusterMembership } from "./cluster.ts";
import type { DatabaseNode } from "./database-node.ts";
import type { SharedAgentsOptions } from "./shared-agents.ts";
import type { SharedAgentsReport } from "./shared-agents-report.ts";

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
  readonly database: Database;
  readonly settings: SharedSettings;
  /** Null for a process that uses its database alone. */
  readonly cluster: ClusterNode | null;
  /** The present identity of this process in PostgreSQL; null with SQLite. */
  readonly incarnation: (() => string) | null;
  readonly lease: Lease | null;
  /** Null with SQLite. */
  readonly node: DatabaseNode | null;
  readonly callLog: CallLog;
  readonly instanceStore: InstanceStore;
  /** The same store if the instances are in the data folder; null in a cluster. */
  readonly localInstances: LocalInstanceStore | null;
  /** Which node runs an instance; null for a process that is alone. */
  readonly ownership: Ownership | null;
  /** Null for a process that is alone. */
  readonly openRemote: OpenRemote | null;
  /** Null for a process that is alone. */
  readonly agentsReport: SharedAgentsReport | null;
}

/** Adds every opened part to `closers`, even if a later part fails to open. */
export async function openStorage(
  options: StorageOptions,
  clock: Clock,
  closers: Closer[],
): Promise<Storage> {
  const dataFolder = DataFolder.open(options.config.dataDir);
  closers.push({ close: () => dataFolder.close() });
  const { database, settings, membership, node, incarnation } = await openDatabase(
    options,
    dataFolder,
    closers,
  );
  const announced = <T>(what: string, step: Promise<T>) => announce(options.logger, what, step);
  await announced("the migrations of the database, which another node may be applying", migrate(database));
  await membership?.openSettings();
  const cluster = membership?.cluster ?? null;
  const callLog = await announced(
    "the call log",
    openCallLog({ ...options, dataFolder, database, cluster, clock }),
  );
  closers.push({ close: () => callLog.close() });
  node?.onOtherServer(() => callLog.reconnect?.());
  const lease = membership?.lease ?? null;
  const { instanceStore, localInstances, ownership, openRemote, agentsReport } =
    cluster === null || lease === null || incarnation === null
      ? await openAlone(options, dataFolder)
      : await announced(
          "the PostgreSQL of the instances (agents.stores)",
          openShared({ ...options, dataFolder, cluster, lease, incarnation, node }),
        );
  closers.push({ close: () => instanceStore.close(), canStall: true });
  closers.push({ close: () => agentsReport?.close() });
  return {
    dataFolder,
    database,
    settings,
    cluster,
    lease,
    node,
    incarnation,
    callLog,
    instanceStore,
    localInstances,
    ownership,
    openRemote,
    agentsReport,
  };
}

/** A supervisor, and who reads its log, should know what a start waits for. */
function announce<T>(logger: Logger, what: string, step: Promise<T>): Promise<T> {
  const cancel = afterAwakeTime(QUIET_START_MS, () => logger.warn(`the start waits for ${what}`));
  return step.finally(cancel);
}

type Agents = Pick<Storage, "instanceStore" | "localInstances" | "ownership" | "openRemote" | "agentsReport">;

async function openAlone(options: StorageOptions, dataFolder: DataFolder): Promise<Agents> {
  const store = await openLocalAgents(options, dataFolder);
  return {
    instanceStore: store,
    localInstances: store,
    ownership: null,
    openRemote: null,
    agentsReport: null,
  };
}

async function openShared(
  options: SharedAgentsOptions & { readonly node: DatabaseNode | null },
): Promise<Agents> {
  const { openSharedAgents, openRemote } = await import("./shared-agents.ts");
  const { store, report } = await openSharedAgents(options);
  options.node?.onOtherServer(() => store.reconnect());
  return {
    instanceStore: store,
    localInstances: null,
    ownership: store.ownership,
    openRemote,
    agentsReport: report,
  };
}

async function openDatabase(
  options: StorageOptions,
  dataFolder: DataFolder,
  closers: Closer[],
): Promise<{
  database: Database;
  settings: SharedSettings;
  membership: ClusterMembership | null;
  node: DatabaseNode | null;
  incarnation: (() => string) | null;
}> {
  const { databaseUrl } = options.config;
  if (databaseUrl === undefined) {
    const database = await SqliteDatabase.open(dataFolder.file("signalbox.db"), options.onFatal);
    closers.push({ close: () => database.close() });
    return {
      database,
      settings: new LocalSettings(new AuditedDatabase(database)),
      membership: null,
      node: null,
      incarnation: null,
    };
  }
  const { openPostgres } = await import("./cluster.ts");
  const opened = await openPostgres(databaseUrl.reveal(), options, closers);
  return { ...opened, incarnation: () => opened.database.session.identity.inc };
}

function openLocalAgents(
  { config, logger, onFatal }: StorageOptions,
  dataFolder: DataFolder,
): Promise<LocalInstanceStore> {
  const { store, journalFileBytes } = config.file.agents;
  return openInstanceStore(store, {
    folder: dataFolder.file("agents"),
    baseSchema: BASE_SCHEMA,
    reservedName: RESERVED_NAME,
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
