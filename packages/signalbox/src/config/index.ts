export { checkWorkerAccess, type Config, type ConfigFlags, loadConfig } from "./config.ts";
export { storeVariables } from "./agent-stores.ts";
export { checkCluster, sharedSecrets } from "./shared-secrets.ts";
export { priceTable } from "./call-log-keys.ts";
export { ConfigError } from "./config-error.ts";
export { type ConfigFile, type ConfigFileInput, defineConfig } from "./config-file.ts";
