/** Opens PostgreSQL, alone or as a node of a cluster, as the configuration says. Loaded on demand: most installations use SQLite. */
import { AuditedDatabase } from "../audit/index.ts";
import { ClusterNode, ClusterSettings, Lease } from "../cluster/index.ts";
import { type Config, sharedSecrets } from "../config/index.ts";
import { newestMigration } from "../database/migrate.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "../database/postgres/postgres-database.ts";
import { LocalSettings, type SharedSettings } from "../database/shared-settings.ts";
import { LINK_VERSIONS } from "../engines/node-link/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { VERSION } from "../version.ts";
import { steadyClock } from "../core/clock.ts";
import { retry } from "../core/retry.ts";
import type { Closer } from "./close-all.ts";
import { DatabaseNode } from "./database-node.ts";
import { LinkLog } from "./link-log.ts";

/** Until the database can be read: without an end. */
const RELOAD_RETRY = { maxAttempts: Infinity, baseDelayMs: 200, maxDelayMs: 5000 };

export interface PostgresOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly onFatal: (error: Error) => void;
}

export interface OpenedPostgres {
  readonly database: PostgresDatabase;
  readonly settings: SharedSettings;
  /** Null for a process that uses its database alone. */
  readonly membership: ClusterMembership | null;
  readonly node: DatabaseNode;
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
  const { config, logger } = options;
  const node = new DatabaseNode(logger, config.file.cluster.maxStaleMs);
  const common: PostgresDatabaseOptions = {
    nodeName: config.nodeName,
    version: VERSION,
    schema: newestMigration(),
    deadAfterMs: config.file.cluster.deadAfterMs,
    onLostCommits: (lost) => node.onLostCommits(lost),
    onWait: (error) => logger.warn({ err: error }, "cannot connect to PostgreSQL yet: retrying"),
  };
  const cluster = createClusterNode(config, logger);
  const opened =
    cluster === null
      ? await openAlone(url, options, common, closers)
      : await openAsMember(url, options, { common, cluster }, closers);
  await node.watch(opened.database);
  closers.push({ close: () => node.close() });
  return { ...opened, node };
}

type Opened = Omit<OpenedPostgres, "node">;

async function openAsMember(
  url: string,
  { config, logger, onFatal }: PostgresOptions,
  { cluster, common }: { readonly cluster: ClusterNode; readonly common: PostgresDatabaseOptions },
  closers: Closer[],
): Promise<Opened> {
  // Closed after the database: the node leaves the cluster before its links end.
  closers.push({ close: () => cluster.close() });
  const lease = new Lease(config.file.cluster);
  const settings = new ClusterSettings({
    cluster,
    deadAfterMs: config.file.cluster.deadAfterMs,
    onError: (error) => logger.error({ err: error }, "cannot read changed settings; retrying"),
  });
  const invalidate = () => settings.invalidate();
  const database = await PostgresDatabase.open(url, onFatal, {
    ...common,
    cluster: {
      secretCheck: cluster.secretCheck,
      shared: cluster.shared,
      linkVersions: LINK_VERSIONS,
      openAddress: (identity) => cluster.openAddress(identity),
      onMembers: (members) => cluster.onMembers(members),
      onSettingsVersion: (version, sentAt) => settings.onVersion(version, () => lease.renew(sentAt)),
      onSettingsRead: (version, sentAt) => settings.onVersion(version, () => lease.recordRead(sentAt)),
      onDead: () => lease.end(),
      onOtherServer: invalidate,
      onUnreachable: () => lease.reportUnreachable(),
      onReachable: () => lease.reportReachable(),
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
  closers.push({ close: () => cluster.leave() });
  cluster.useLivingNodes(() => database.readLivingNodes());
  const membership = { cluster, lease, openSettings: () => settings.open(new AuditedDatabase(database)) };
  return { database, settings, membership };
}

async function openAlone(
  url: string,
  { logger, onFatal }: PostgresOptions,
  options: PostgresDatabaseOptions,
  closers: Closer[],
): Promise<Opened> {
  const closing = new AbortController();
  let settings: LocalSettings | undefined;
  const reload = () =>
    retry(async () => settings?.reloadAll(), { ...RELOAD_RETRY, signal: closing.signal }).then(
      () => logger.warn("the settings in memory were out of date, and have been read again"),
      // Only the end of the process ends the attempts.
      () => undefined,
    );
  const database = await PostgresDatabase.open(url, onFatal, {
    ...options,
    onOutOfDate: () => void reload(),
  });
  closers.push({
    close: () => {
      closing.abort();
      return database.close();
    },
  });
  settings = new LocalSettings(new AuditedDatabase(database));
  return { database, settings, membership: null };
}

/** Null if the process uses its database alone. */
function createClusterNode(config: Config, logger: Logger): ClusterNode | null {
  if (config.cluster === null) return null;
  const { secret, host, port, advertisedHost } = config.cluster;
  const log = new LinkLog(logger, steadyClock);
  return new ClusterNode({
    secret,
    shared: sharedSecrets(config),
    host,
    port,
    advertisedHost,
    isEncrypted: config.file.cluster.tls,
    onLinkUp: (peer) => log.up(peer),
    onLinkDown: (peer, reason) => log.down(peer, reason),
    onLinkProblem: (peer, reason) => log.problem(peer, reason),
  });
}
