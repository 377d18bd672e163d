/**
 * The secrets that all nodes of a cluster must have. Otherwise each node would generate its own, or could not read what another one has
 * stored.
 */
import { Secret } from "../core/secret.ts";
import { CLUSTER_SECRET } from "./cluster-config.ts";
import { ConfigError } from "../core/config-error.ts";
import type { Config } from "./config.ts";

export interface SharedSecret {
  readonly variable: string;
  /** Current value first; several during a rotation. */
  readonly values: readonly Secret[];
}

/** Variables of other sources, which are not required: GITHUB_WEBHOOK_SECRET, … */
const SOURCE_VARIABLE = /^[A-Z0-9_]+_WEBHOOK_SECRET$/;

export function sharedSecrets(
  config: Pick<Config, "rootToken" | "encryptionKeys" | "masterKeys" | "environment" | "file">,
): SharedSecret[] {
  return [
    { variable: "SIGNALBOX_ROOT_TOKEN", values: config.rootToken === undefined ? [] : [config.rootToken] },
    { variable: "SIGNALBOX_ENCRYPTION_KEY", values: config.encryptionKeys },
    { variable: "SIGNALBOX_MASTER_KEY", values: config.masterKeys },
    { variable: "WEBHOOK_SECRET", values: readList(config.environment, "WEBHOOK_SECRET") },
    ...secretsOfSources(config),
  ];
}

/** With another secret, a node would refuse the deliveries that the others accept. A secret that only some nodes have is no difference: it is being added. */
function secretsOfSources({ environment, file }: Pick<Config, "environment" | "file">): SharedSecret[] {
  const named = Object.values(file.webhooks.sources).flatMap(({ secretVariable }) => secretVariable ?? []);
  const variables = new Set([
    ...named,
    ...Object.keys(environment).filter((name) => SOURCE_VARIABLE.test(name)),
  ]);
  variables.delete("WEBHOOK_SECRET");
  return [...variables]
    .map((variable) => ({ variable, values: readList(environment, variable) }))
    .filter(({ values }) => values.length > 0);
}

function readList(environment: Config["environment"], variable: string): Secret[] {
  return (environment[variable] ?? "").split(",").flatMap((part) => {
    const text = part.trim();
    return text === "" ? [] : [new Secret(text)];
  });
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
