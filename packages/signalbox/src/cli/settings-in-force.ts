/** The settings in force, with secrets hidden, and where each of them comes from. Loads the schema: imported on demand. */
import {
  type Config,
  loadConfig,
  OPTIONS_OF_KEYS,
  PROCESS_SETTINGS,
  readConfigFile,
} from "../config/index.ts";
import type { CommandContext } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";

export interface Setting {
  readonly name: string;
  readonly value: unknown;
  readonly origin: "default" | "file" | "environment" | "option";
}

const HIDDEN = "[secret]";

export async function settingsInForce(context: CommandContext): Promise<Setting[]> {
  const environment = readEnvironment(context);
  const flags = toFlags(context);
  const config = await loadConfig(flags, environment, context.workingFolder);
  const { content } = await readConfigFile(flags.config, context.workingFolder);
  return [
    ...processSettings(context, config, environment),
    ...keysOf(config.file, content, "").map((setting) => withOption(setting, context)),
  ];
}

function processSettings(
  context: CommandContext,
  config: Config,
  environment: Readonly<Record<string, string | undefined>>,
): Setting[] {
  const effective: Readonly<Record<string, unknown>> = {
    port: config.port,
    host: config.host,
    "admin-port": config.admin?.port,
    "admin-host": config.admin?.host,
    "metrics-public": config.isMetricsPublic,
    "data-dir": config.dataDir,
    config: config.filePath ?? undefined,
    "node-name": config.nodeName,
    "cluster-host": config.cluster?.host,
    "cluster-port": config.cluster?.port,
    "log-level": config.logLevel,
  };
  return PROCESS_SETTINGS.map(({ name, option, variable, isSecret = false }) => {
    const isOption =
      option !== undefined && (context.option(option) !== undefined || context.hasSwitch(option));
    const text = variable === undefined ? undefined : environment[variable];
    const isSet = text !== undefined && text !== "";
    const origin = isOption ? "option" : isSet ? "environment" : "default";
    const given = (isOption && option !== undefined ? context.option(option) : text) ?? undefined;
    const value = isSecret ? (origin === "default" ? undefined : HIDDEN) : (effective[name] ?? given);
    return { name, value: value ?? null, origin };
  });
}

/** The keys of a section, down to values that are no sections. A key that the file has is from the file, whatever its value. */
function keysOf(value: unknown, content: unknown, path: string): Setting[] {
  if (path !== "" && (!isSection(value) || Object.keys(value).length === 0))
    return [{ name: path, value: hide(path, value), origin: content === undefined ? "default" : "file" }];
  return Object.entries(value as object).flatMap(([key, inner]) =>
    keysOf(inner, isSection(content) ? content[key] : undefined, path === "" ? key : `${path}.${key}`),
  );
}

function withOption(setting: Setting, context: CommandContext): Setting {
  const option = OPTIONS_OF_KEYS[setting.name];
  const isGiven =
    option !== undefined && (context.option(option) !== undefined || context.options(option).length > 0);
  return isGiven ? { ...setting, origin: "option" } : setting;
}

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Variables of a program are often secrets, and URLs of PostgreSQL contain passwords. */
function hide(path: string, value: unknown): unknown {
  if (path.startsWith("agents.worker.vars.")) return HIDDEN;
  if (path === "agents.workers") return (value as { readonly entry: string }[]).map(({ entry }) => entry);
  if (typeof value === "function") return "[function]";
  if (typeof value === "string") return /^postgres(ql)?:\/\//.test(value) ? HIDDEN : value;
  return Array.isArray(value) ? value.map((one) => hide("", one)) : value;
}
