/**
 * Opens the instances of a cluster: their histories are in PostgreSQL, and each runs on one node at a time. Loaded on demand: a process that is alone
 * keeps its instances in its data folder.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { BASE_SCHEMA, RESERVED_NAMES } from "../agents/index.ts";
import type { Config } from "../config/index.ts";
import { DataFolderError } from "../core/data-folder-error.ts";
import type { DataFolder } from "../database/sqlite/data-folder.ts";
import { openClusterReach } from "../agents/remote/cluster-reach.ts";
import { openSharedStore } from "../engines/instance-store/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { SharedAgentsReport } from "./shared-agents-report.ts";
import type { Cluster, Member } from "./topology.ts";

export interface SharedAgentsOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly onFatal: (error: Error) => void;
  readonly dataFolder: DataFolder;
}

export async function openSharedAgents(options: SharedAgentsOptions, member: Member): Promise<Cluster> {
  const { config, logger, onFatal, dataFolder } = options;
  const { node, network, lease } = member;
  requireNoLocalInstances(dataFolder.file("agents"));
  // Of several processes: the common folder may be that of a process that was alone before.
  if (config.commandDataDir !== undefined) requireNoLocalInstances(join(config.commandDataDir, "agents"));
  const store = await openSharedStore({
    folder: dataFolder.file("agent-cache"),
    stores: config.agentStores.map((url) => url.reveal()),
    maxCacheBytes: config.file.agents.cacheBytes,
    nodes: {
      get self() {
        return node.incarnation;
      },
      get isLeaseFresh() {
        return lease.isFresh;
      },
      get cutOffMs() {
        return lease.cutOffMs > 0 && network.isAbandoned ? Infinity : lease.cutOffMs;
      },
      readLiving: async () => new Set(await network.readLiving()),
    },
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    onFailure: onFatal,
    onStall: (error) => logger.error({ err: error }, "disk full: agents of this node are paused"),
    onError: (error) =>
      logger.warn(
        { err: error },
        "a snapshot of an instance, or the removal of old records, failed; retrying",
      ),
  }).catch((error: unknown) => {
    throw new DataFolderError(`cannot open the instances in PostgreSQL (agents.stores): ${reason(error)}`, {
      cause: error,
    });
  });
  network.onRejoin(() => {
    store.ownership.rejoined();
    return Promise.resolve();
  });
  node.onOtherServer(() => store.reconnect());
  return {
    ...member,
    instances: store,
    report: new SharedAgentsReport(store, logger),
    openReach: openClusterReach,
  };
}

/** A folder with instances would be ignored from now on, and empty instances would take their place. */
function requireNoLocalInstances(folder: string): void {
  if (!existsSync(folder)) return;
  // A process that was alone and had no instances leaves folders without files.
  if (!readdirSync(folder, { recursive: true, withFileTypes: true }).some((entry) => entry.isFile())) return;
  throw new DataFolderError(
    `the folder ${folder} has instances from before this process was a node of a cluster: import them with "signalbox agents import", or move the folder away`,
  );
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
