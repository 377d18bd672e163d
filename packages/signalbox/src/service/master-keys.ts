/** The keys under which provider keys are stored: of the environment, or of a file in the data folder. */
import { MasterKeys } from "../accounts/index.ts";
import type { Config } from "../config/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Storage } from "./storage.ts";

export function openMasterKeys(config: Config, { dataFolder }: Storage, logger: Logger): MasterKeys {
  return new MasterKeys({
    fromEnvironment: config.masterKeys,
    file: config.databaseUrl === undefined ? dataFolder.file("master-key") : null,
    onFile: (file) =>
      logger.warn(
        { file },
        "the master key of the stored provider keys is in the data folder: a copy of the folder reveals them. Set SIGNALBOX_MASTER_KEY to keep the key elsewhere",
      ),
  });
}
