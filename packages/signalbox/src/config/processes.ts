/** How many processes of this machine serve together, each as a node of the cluster. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { ConfigError } from "../core/config-error.ts";
import { CLUSTER_SECRET, MAX_NAME_LENGTH } from "./cluster-config.ts";
import type { Config } from "./config.ts";

/** Called by `serve`: other commands use a server and start no processes. */
export function countProcesses({ file, databaseUrl, cluster }: Config): number {
  const { processes } = file.cluster;
  const missing = [
    ...(databaseUrl === undefined ? ["DATABASE_URL (PostgreSQL)"] : []),
    ...(cluster === null ? [CLUSTER_SECRET] : []),
  ];
  if (processes === "auto") return missing.length === 0 ? availableParallelism() : 1;
  if (processes > 1 && missing.length > 0)
    throw new ConfigError(
      `--processes (SIGNALBOX_PROCESSES, cluster.processes): ${processes} processes need ${missing.join(" and ")}, found none; one process uses embedded SQLite`,
    );
  return processes;
}

/** Which of the processes this one is, and the ports that the others have got. */
export interface ProcessPlace {
  /** From 1. */
  readonly number: number;
  /** Present if the configured port is 0 and the supervisor has got one. */
  readonly port?: number;
  readonly adminPort?: number;
}

/** The configuration of one process: folder, name and cluster port of its own. */
export function configOfProcess(config: Config, { number, port, adminPort }: ProcessPlace): Config {
  const { dataDir, nodeName, cluster, admin } = config;
  const suffix = `-${number}`;
  return {
    ...config,
    port: port ?? config.port,
    admin: admin === null ? null : { ...admin, port: adminPort ?? admin.port },
    dataDir: join(dataDir, `process${suffix}`),
    commandDataDir: dataDir,
    nodeName: nodeName.slice(0, MAX_NAME_LENGTH - suffix.length) + suffix,
    cluster:
      cluster === null || cluster.port === 0 ? cluster : { ...cluster, port: cluster.port + number - 1 },
  };
}
