/** Opens PostgreSQL, alone or as a node of a cluster, as the configuration says. Loaded on demand: most installations use SQLite. */
import { ClusterNode, ClusterSettings, Lease } from "../cluster/index.ts";
import { type Config, sharedSecrets } from "../config/index.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "../database/postgres/postgres-database.ts";
import { LocalSettings, type SharedSettings } from "../database/shared-settings.ts";
import type { Logger } from "../telemetry/logger.ts";
import { VERSION } from "../version.ts";
import type { Closer } from "./close-all.ts";

export interface PostgresOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly onFatal: (error: Error) => void;
}

export interface OpenedPostgres {
  readonly database: PostgresDatabase;
  readonly settings: SharedSettings;
  /** Null for a process that uses its database alone. */
  readonly node: ClusterMembership | null;
}

/** What makes this process a node of a cluster. */
export interface ClusterMembership {
  readonly cluster: ClusterNode;
  readonly lease: Lease;
  /** Called when the tables exist, before anything is loaded. */
  openSettings(): Promise<void>;
}

/** The node joins here; it loads its settings later. */
export async function openPostgres(
  url: string,
  options: PostgresOptions,
  closers: Closer[],
): Promise<OpenedPostgres> {
  const { config, logger, onFatal } = options;
  const common: PostgresDatabaseOptions = {
    nodeName: config.nodeName,
    version: VERSION,
    onWait: (error) => logger.warn({ err: error }, "cannot connect to PostgreSQL: retrying for 30 seconds"),
  };
  const cluster = createClusterNode(config, logger);
  if (cluster === null) return openAlone(url, { config, logger, onFatal }, common, closers);
  // Closed after the database: the node leaves the cluster before its links end.
  closers.push({ close: () => cluster.close() });
  const lease = new Lease(config.file.cluster.maxStaleMs);
  const settings = new ClusterSettings({
    cluster,
    lease,
    onError: (error) => logger.error({ err: error }, "cannot read changed settings; retrying"),
  });
  const invalidate = () => settings.invalidate();
  const database = await PostgresDatabase.open(url, onFatal, {
    ...common,
    cluster: {
      secretCheck: cluster.secretCheck,
      shared: cluster.shared,
      openAddress: (identity) => cluster.openAddress(identity),
      onMembers: (members) => cluster.onMembers(members),
      onSettingsVersion: (version, sentAt) => settings.onVersion(version, sentAt),
      onOtherServer: invalidate,
      onUnreachable: () => lease.reportUnreachable(),
      onRejoined: ({ inc }) => {
        invalidate();
        logger.warn({ inc }, "cluster: this node was declared dead, and has joined again");
        cluster
          .onRejoined()
          .catch((err: unknown) => logger.error({ err }, "cluster: cannot join completely"));
      },
    },
    onOutOfDate: invalidate,
  });
  closers.push({ close: () => database.close() });
  cluster.useLivingNodes(() => database.readLivingNodes());
  const node = { cluster, lease, openSettings: () => settings.open(database) };
  return { database, settings, node };
}

async function openAlone(
  url: string,
  { logger, onFatal }: PostgresOptions,
  options: PostgresDatabaseOptions,
  closers: Closer[],
): Promise<OpenedPostgres> {
  let settings: LocalSettings | undefined;
  const database = await PostgresDatabase.open(url, onFatal, {
    ...options,
    onOutOfDate: () => {
      settings?.reloadAll().catch((error: unknown) => {
        logger.fatal({ err: error }, "the settings in memory are out of date and cannot be read again");
        onFatal(error as Error);
      });
    },
  });
  closers.push({ close: () => database.close() });
  settings = new LocalSettings(database);
  return { database, settings, node: null };
}

/** Null if the process uses its database alone. */
function createClusterNode(config: Config, logger: Logger): ClusterNode | null {
  if (config.cluster === null) return null;
  const { secret, host, port, advertisedHost } = config.cluster;
  return new ClusterNode({
    secret,
    shared: sharedSecrets(config),
    host,
    port,
    advertisedHost,
    isEncrypted: config.file.cluster.tls,
    onLinkUp: (peer) => logger.info({ peer }, "cluster: linked to a node"),
    onLinkDown: (peer, reason) => logger.warn({ peer, reason }, "cluster: the link to a node ended"),
    onLinkProblem: (peer, reason) => logger.warn({ peer, reason }, "cluster: cannot link to a node"),
  });
}
