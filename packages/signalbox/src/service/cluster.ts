/** Opens PostgreSQL, alone or as a node of a cluster, as the configuration says. Loaded on demand: most installations use SQLite. */
import { ClusterNode, ClusterSettings, Lease } from "../cluster/index.ts";
import { type Config, sharedSecrets } from "../config/index.ts";
import type { Database } from "../database/database.ts";
import { newestMigration } from "../database/migrate.ts";
import { PostgresDatabase, type PostgresDatabaseOptions } from "../database/postgres/postgres-database.ts";
import { LocalSettings, type SharedSettings } from "../database/shared-settings.ts";
import { LINK_VERSIONS } from "../engines/node-link/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { VERSION } from "../version.ts";
import { steadyClock } from "../core/clock.ts";
import { retry } from "../core/retry.ts";
import type { Closer } from "./close-all.ts";
import { CommitLosses, DatabaseNode } from "./database-node.ts";
import { LinkLog } from "./link-log.ts";
import type { Member, Membership } from "./topology.ts";

/** Until the database can be read: without an end. */
const RELOAD_RETRY = { maxAttempts: Infinity, baseDelayMs: 200, maxDelayMs: 5000 };

export interface PostgresOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly onFatal: (error: Error) => void;
}

/** The database of the control plane, and what this process is to it. */
export interface OpenedDatabase {
  readonly database: Database;
  readonly membership: Membership;
  /** Called when the tables exist, before anything is loaded. `database` is the one for management writes. */
  openSettings(database: Database): Promise<SharedSettings>;
}

export interface OpenedPostgres extends OpenedDatabase {
  readonly database: PostgresDatabase;
  readonly membership: Exclude<Membership, { kind: "single" }>;
}

type Opened = Omit<OpenedPostgres, "membership">;

/** A node joins here; it loads its settings later. */
export async function openPostgres(
  url: string,
  options: PostgresOptions,
  closers: Closer[],
): Promise<OpenedPostgres> {
  const { config, logger } = options;
  const losses = new CommitLosses(logger);
  const { deadAfterMs, maxStaleMs } = config.file.cluster;
  const common: PostgresDatabaseOptions = {
    nodeName: config.nodeName,
    version: VERSION,
    schema: newestMigration(),
    deadAfterMs,
    onLostCommits: (lost) => losses.record(lost),
    onWait: (error) => logger.warn({ err: error }, "cannot connect to PostgreSQL yet: retrying"),
  };
  const watch = async (database: PostgresDatabase) => {
    const node = new DatabaseNode({ database, losses, maxStaleMs, logger });
    await node.start();
    closers.push({ close: () => node.close() });
    return node;
  };
  const network = createClusterNode(config, logger);
  if (network === null) {
    const opened = await openAlone(url, options, common, closers);
    return { ...opened, membership: { kind: "singleOnPostgres", node: await watch(opened.database) } };
  }
  const lease = new Lease(config.file.cluster);
  const opened = await openAsMember(url, options, { common, network, lease }, closers);
  return { ...opened, membership: { kind: "cluster", node: await watch(opened.database), network, lease } };
}

async function openAsMember(
  url: string,
  { config, logger, onFatal }: PostgresOptions,
  {
    network,
    lease,
    common,
  }: Pick<Member, "network" | "lease"> & { readonly common: PostgresDatabaseOptions },
  closers: Closer[],
): Promise<Opened> {
  // Closed after the database: the node leaves the cluster before its links end.
  closers.push({ close: () => network.close() });
  const settings = new ClusterSettings({
    cluster: network,
    deadAfterMs: config.file.cluster.deadAfterMs,
    onError: (error) => logger.error({ err: error }, "cannot read changed settings; retrying"),
  });
  const invalidate = () => settings.invalidate();
  const database = await PostgresDatabase.open(url, onFatal, {
    ...common,
    cluster: {
      secretCheck: network.secretCheck,
      shared: network.shared,
      linkVersions: LINK_VERSIONS,
      openAddress: (identity) => network.openAddress(identity),
      onMembers: (members) => network.onMembers(members),
      onSettingsVersion: (version, sentAt) => settings.onVersion(version, () => lease.renew(sentAt)),
      onSettingsRead: (version, sentAt) => settings.onVersion(version, () => lease.recordRead(sentAt)),
      onDead: () => lease.end(),
      onOtherServer: invalidate,
      onUnreachable: () => lease.reportUnreachable(),
      onReachable: () => lease.reportReachable(),
      onRejoined: ({ inc }) => {
        invalidate();
        logger.warn({ inc }, "cluster: this node was declared dead, and has joined again");
        network
          .onRejoined()
          .catch((err: unknown) => logger.error({ err }, "cluster: cannot join completely"));
      },
    },
    onOutOfDate: invalidate,
  });
  closers.push({ close: () => database.close() });
  closers.push({ close: () => network.leave() });
  network.useLivingNodes(() => database.readLivingNodes());
  const openSettings = async (audited: Database) => {
    await settings.open(audited);
    return settings;
  };
  return { database, openSettings };
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
  const openSettings = async (audited: Database) => {
    settings = new LocalSettings(audited);
    return settings;
  };
  return { database, openSettings };
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
