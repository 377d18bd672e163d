/**
 * The secrets that all nodes of a cluster must have. Otherwise each node would generate its own, or could not read what another one has
 * stored.
 */
import { Secret } from "../core/secret.ts";
import { CLUSTER_SECRET } from "./cluster-config.ts";
import { ConfigError } from "./config-error.ts";
import type { Config } from "./config.ts";

export interface SharedSecret {
  readonly variable: string;
  /** Current value first; several during a rotation. */
  readonly values: readonly Secret[];
}

export function sharedSecrets(
  config: Pick<Config, "rootToken" | "encryptionKeys" | "masterKeys" | "environment">,
): SharedSecret[] {
  const webhook = (config.environment["WEBHOOK_SECRET"] ?? "").split(",").flatMap((part) => {
    const text = part.trim();
    return text === "" ? [] : [new Secret(text)];
  });
  return [
    { variable: "SIGNALBOX_ROOT_TOKEN", values: config.rootToken === undefined ? [] : [config.rootToken] },
    { variable: "SIGNALBOX_ENCRYPTION_KEY", values: config.encryptionKeys },
    { variable: "SIGNALBOX_MASTER_KEY", values: config.masterKeys },
    { variable: "WEBHOOK_SECRET", values: webhook },
  ];
}

/** Called before the service starts; commands that only connect to a server need none of these settings. */
export function checkCluster(config: Config): void {
  if (config.cluster === null) {
    if (config.file.agents.stores.length === 0) return;
    throw new ConfigError(`agents.stores: expected ${CLUSTER_SECRET} with it, found none`);
  }
  if (config.databaseUrl === undefined) {
    throw new ConfigError(`${CLUSTER_SECRET}: expected DATABASE_URL (PostgreSQL) with it, found none`);
  }
  for (const { variable, values } of sharedSecrets(config)) {
    if (values.length > 0) continue;
    throw new ConfigError(
      `${variable}: required with ${CLUSTER_SECRET}, found none; set the same value on all nodes of the cluster`,
    );
  }
}
