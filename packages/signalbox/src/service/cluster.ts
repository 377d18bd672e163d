/** This process as a node of a cluster, as the configuration describes it. Loaded on demand: most installations have one node. */
import { ClusterNode } from "../cluster/index.ts";
import { type Config, sharedSecrets } from "../config/index.ts";
import type { ClusterOptions } from "../database/postgres/postgres-database.ts";
import { LINK_VERSIONS } from "../engines/node-link/index.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Null if the process uses its database alone. */
export function createClusterNode(config: Config, logger: Logger): ClusterNode | null {
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

/** What the database needs of the node, and reports to it. */
export function membershipOf(cluster: ClusterNode, logger: Logger): ClusterOptions {
  return {
    secretCheck: cluster.secretCheck,
    shared: cluster.shared,
    linkVersions: LINK_VERSIONS,
    openAddress: (identity) => cluster.openAddress(identity),
    onMembers: (members) => cluster.onMembers(members),
    onRejoined: () => {
      logger.warn(
        { inc: cluster.identity.inc },
        "cluster: this node was declared dead, and has joined again",
      );
      cluster
        .onRejoined()
        .catch((err: unknown) => logger.error({ err }, "cluster: cannot read the settings again"));
    },
  };
}
