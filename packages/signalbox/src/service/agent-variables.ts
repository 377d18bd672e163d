/**
 * The variables of the process that agents and a worker find in `env`. A program that prints its `env` is harmless where the original runs it, because nothing else
 * is in it there; here the process has the keys and passwords of the service, too.
 *
 * 1. Secrets of the service itself are never visible.
 * 2. Without `agents.env`, other credentials that the service uses are not visible either: provider keys, those of cloud identities, of the log push and of telemetry. Secrets of webhook
 *    sources are, because agents that verify deliveries themselves read them there (section 5.2 of the contract).
 * 3. With `agents.env`, exactly the variables that it names are visible, whatever the service uses them for.
 */
import { type Config, ConfigError, PROCESS_SETTINGS, storeVariables } from "../config/index.ts";
import { matchesGlob } from "../core/glob.ts";
import { identityVariables, isProviderKeyName } from "../gateway/index.ts";
import type { Logger } from "../telemetry/logger.ts";

type Variables = Readonly<Record<string, string | undefined>>;

const WEBHOOK_SECRET = "WEBHOOK_SECRET";
const OWN_SECRETS: readonly string[] = PROCESS_SETTINGS.flatMap(({ variable, isSecret }) =>
  isSecret === true && variable !== undefined && variable !== WEBHOOK_SECRET ? [variable] : [],
);
const TELEMETRY_HEADERS = /^OTEL_EXPORTER_OTLP_(?:[A-Z]+_)?HEADERS$/;

export function agentVariables(config: Pick<Config, "environment" | "file">, logger: Logger): Variables {
  const { environment, file } = config;
  const own = new Set([...OWN_SECRETS, ...storeVariables(file.agents.stores)]);
  const names = Object.keys(environment).filter((name) => !own.has(name));
  const pick = (chosen: readonly string[]) =>
    Object.fromEntries(chosen.map((name) => [name, environment[name]]));
  const { env: listed } = file.agents;
  if (listed !== undefined) {
    const secret = listed.find((name) => own.has(name));
    if (secret !== undefined)
      throw new ConfigError(`agents.env: ${secret} is a secret of the service, which agents never see`);
    const globs = listed.map((pattern) => ({ parts: pattern.split("*") }));
    return pick(names.filter((name) => globs.some((glob) => matchesGlob(glob, name))));
  }
  const withheld = new Set(names.filter(usedBy(config)));
  const hasPrograms = file.agents.modules.length > 0 || file.agents.worker !== undefined;
  if (hasPrograms && withheld.size > 0)
    logger.info(
      { variables: [...withheld] },
      "agents do not see variables whose values the service itself uses; agents.env names what they see",
    );
  return pick(names.filter((name) => !withheld.has(name)));
}

function usedBy({ file, environment }: Pick<Config, "environment" | "file">): (name: string) => boolean {
  const { logPush, providerKeys } = file.gateway;
  const used = new Set([...Object.keys(providerKeys), ...identityVariables(environment)]);
  if (logPush !== undefined)
    for (const name of [logPush.accessKeyId, logPush.secretAccessKey, "AWS_SESSION_TOKEN"]) used.add(name);
  const slugs = Object.keys(file.providers);
  return (name) => used.has(name) || TELEMETRY_HEADERS.test(name) || isProviderKeyName(name, slugs);
}
