/** Environment and flags of a command, as input of the configuration. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import type { ConfigFlags } from "../config/index.ts";
import { type CommandContext, UsageError } from "./command.ts";

type OptionSource = Pick<
  CommandContext,
  "option" | "options" | "hasSwitch" | "environment" | "workingFolder"
>;

/** The environment of the process and the variables of `--env-file`; the process's variables take precedence. */
export function readEnvironment(context: OptionSource): Record<string, string | undefined> {
  const file = context.option("env-file");
  if (file === undefined) return { ...context.environment };
  let text: string;
  try {
    text = readFileSync(resolve(context.workingFolder, file), "utf8");
  } catch (cause) {
    throw new UsageError(`--env-file: cannot read ${file}`, { cause });
  }
  return { ...parseEnv(text), ...context.environment };
}

export function toFlags(context: OptionSource): ConfigFlags {
  return {
    port: context.option("port"),
    host: context.option("host"),
    adminPort: context.option("admin-port"),
    adminHost: context.option("admin-host"),
    tlsCert: context.option("tls-cert"),
    tlsKey: context.option("tls-key"),
    metricsPublic: context.hasSwitch("metrics-public"),
    dataDir: context.option("data-dir"),
    config: context.option("config"),
    databaseUrl: context.option("database-url"),
    clusterHost: context.option("cluster-host"),
    clusterPort: context.option("cluster-port"),
    processes: context.option("processes"),
    nodeName: context.option("node-name"),
    logLevel: context.option("log-level"),
    agents: context.options("agents"),
    worker: context.options("worker"),
    wrangler: context.options("wrangler"),
    agentsAccess: context.option("agents-access"),
  };
}
