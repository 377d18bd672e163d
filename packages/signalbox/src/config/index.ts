export { checkWorkerAccess, type Config, type ConfigFlags, loadConfig } from "./config.ts";
export { storeVariables } from "./agent-stores.ts";
export { CLUSTER_SECRET } from "./cluster-config.ts";
export { checkCluster, sharedSecrets } from "./shared-secrets.ts";
export { OPTIONS_OF_KEYS, PROCESS_SETTINGS } from "./process-settings.ts";
export { readConfigFile } from "./read-config-file.ts";
export { priceTable } from "./call-log-keys.ts";
export { ConfigError } from "../core/config-error.ts";
export { type ConfigFile, type ConfigFileInput, defineConfig } from "./config-file.ts";
