/** The backup of a running service. */
import type { AreaModule } from "../../area-module.ts";
import type { Config } from "../../config/index.ts";
import type { Route } from "../../http/route.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Storage } from "../storage.ts";
import { backupRoutes } from "./backup-routes.ts";
import { runningSource } from "./backup-source.ts";

export function runningBackup(
  config: Config,
  storage: Storage,
  areas: readonly AreaModule[],
  logger: Logger,
): Route[] {
  return backupRoutes({ source: runningSource(config, storage, areas), folder: config.dataDir, logger });
}
