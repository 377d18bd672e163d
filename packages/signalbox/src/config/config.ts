/**
 * The configuration of the service, validated before the service listens. Flags override environment variables, which override defaults.
 * The configuration file contains the settings without a flag.
 */
import { Secret } from "../core/secret.ts";
import { LOG_LEVELS, type LogLevel } from "../telemetry/logger.ts";
import { readAgentStores } from "./agent-stores.ts";
import {
  type ClusterConfig,
  CLUSTER_SECRET,
  parseCluster,
  parseNodeName,
  parseProcesses,
} from "./cluster-config.ts";
import { ConfigError } from "../core/config-error.ts";
import type { ConfigFile } from "./config-file.ts";
import { dataDirOf } from "./data-dir.ts";
import { readMasterKeys } from "./master-key.ts";
import { parseTls, type TlsConfig } from "./tls-config.ts";
import { readConfigFile } from "./read-config-file.ts";

export interface Config {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** Separate address of dashboard and management interface; null: `host` and `port`. */
  readonly admin: { readonly host: string; readonly port: number } | null;
  /** Certificate and key of all addresses; null: plain HTTP. */
  readonly tls: TlsConfig | null;
  /** `/metrics` requires no token even if the address is reachable from other machines. */
  readonly isMetricsPublic: boolean;
  readonly dataDir: string;
  /** The folder that commands find this server by, if it is another one: that of the supervisor of several processes. */
  readonly commandDataDir?: string;
  /** Absent: embedded SQLite in the data folder. */
  readonly databaseUrl: Secret | undefined;
  /** Null: this process uses its database alone. */
  readonly cluster: ClusterConfig | null;
  /** Connection strings of the servers that hold the instances of a cluster; the first one says where each instance is. */
  readonly agentStores: readonly Secret[];
  readonly nodeName: string;
  readonly rootToken: Secret | undefined;
  /** Encryption keys of stored secrets: the first encrypts, all decrypt. Empty: the key is in a file of the data folder. */
  readonly encryptionKeys: readonly Secret[];
  /** Master keys of stored provider keys: the first encrypts, all decrypt. Empty: the key is in a file of the data folder. */
  readonly masterKeys: readonly Secret[];
  readonly logLevel: LogLevel;
  /** Contains webhook secrets, provider keys and variables of agents; never logged. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** File with the generated secret of generic webhooks, if the environment has none. */
  readonly webhookSecretFile?: string;
  readonly file: ConfigFile;
  readonly filePath: string | null;
  readonly workingFolder: string;
}

/** Flags as given on the command line. */
export interface ConfigFlags {
  readonly port?: string | undefined;
  readonly host?: string | undefined;
  readonly adminPort?: string | undefined;
  readonly adminHost?: string | undefined;
  readonly metricsPublic?: boolean | undefined;
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly dataDir?: string | undefined;
  readonly config?: string | undefined;
  readonly databaseUrl?: string | undefined;
  readonly clusterHost?: string | undefined;
  readonly clusterPort?: string | undefined;
  readonly nodeName?: string | undefined;
  readonly processes?: string | undefined;
  readonly logLevel?: string | undefined;
  /** Files with agent classes, in addition to those of the configuration file. */
  readonly agents?: readonly string[] | undefined;
  /** Entries of workers: the one that answers requests, and further ones. */
  readonly worker?: readonly string[] | undefined;
  /** Their wrangler files, in the same order. */
  readonly wrangler?: readonly string[] | undefined;
  readonly agentsAccess?: string | undefined;
}

const MIN_ROOT_TOKEN_LENGTH = 20;
const LOOPBACK = "127.0.0.1";
const DEFAULT_PORT = 8787;
const DEFAULT_ADMIN_PORT = 8788;
/** At least 128 bits in hex or base64. */
const MIN_ENCRYPTION_KEY_LENGTH = 32;

export async function loadConfig(
  flags: ConfigFlags,
  environment: Readonly<Record<string, string | undefined>>,
  workingFolder: string,
): Promise<Config> {
  const { file: readFile, path } = await readConfigFile(flags.config, workingFolder);
  const file = {
    ...readFile,
    agents: withAgentFlags(readFile.agents, flags),
    cluster: {
      ...readFile.cluster,
      processes: parseProcesses(
        flags.processes === undefined
          ? named("SIGNALBOX_PROCESSES", environment["SIGNALBOX_PROCESSES"])
          : named("--processes", flags.processes),
        readFile.cluster.processes,
      ),
    },
  };
  const host = setting(flags.host, environment["HOST"]) ?? LOOPBACK;
  const databaseUrl = parseDatabaseUrl(setting(flags.databaseUrl, environment["DATABASE_URL"]));
  return {
    host,
    port: parsePort("port", flags.port, environment["PORT"]) ?? DEFAULT_PORT,
    admin: parseAdmin(flags, environment),
    tls: parseTls({
      cert: setting(flags.tlsCert, environment["SIGNALBOX_TLS_CERT"]),
      key: setting(flags.tlsKey, environment["SIGNALBOX_TLS_KEY"]),
      file: file.listener.tls,
      workingFolder,
    }),
    isMetricsPublic:
      flags.metricsPublic === true || parseSwitch("METRICS_PUBLIC", environment["METRICS_PUBLIC"]),
    dataDir: dataDirOf(flags.dataDir, environment, workingFolder),
    databaseUrl,
    agentStores: readAgentStores(file.agents.stores, environment, databaseUrl),
    cluster: parseCluster({
      secret: environment[CLUSTER_SECRET],
      host: setting(flags.clusterHost, environment["SIGNALBOX_CLUSTER_HOST"]),
      port: parsePort("cluster-port", flags.clusterPort, environment["SIGNALBOX_CLUSTER_PORT"]),
      listenerHost: host,
    }),
    nodeName: parseNodeName(setting(flags.nodeName, environment["SIGNALBOX_NODE_NAME"])),
    rootToken: parseRootToken(environment["SIGNALBOX_ROOT_TOKEN"]),
    encryptionKeys: parseEncryptionKeys(environment["SIGNALBOX_ENCRYPTION_KEY"]),
    masterKeys: readMasterKeys(environment),
    logLevel: parseLogLevel(setting(flags.logLevel, environment["SIGNALBOX_LOG_LEVEL"])),
    environment,
    file,
    filePath: path,
    workingFolder,
  };
}

type AgentsSettings = ConfigFile["agents"];

function withAgentFlags(agents: AgentsSettings, flags: ConfigFlags): AgentsSettings {
  const access = flags.agentsAccess ?? agents.access;
  if (access !== "token" && access !== "public" && access !== "worker")
    throw new ConfigError(`--agents-access: expected token, public or worker, found "${access}"`);
  const [first, ...further] = flags.worker ?? [];
  const entry = first ?? agents.worker?.entry;
  const { worker: configured, ...others } = agents;
  const files = flags.wrangler ?? [];
  if (files.length > (entry === undefined ? 0 : 1 + further.length))
    throw new ConfigError("--wrangler: expected --worker FILE with it, found none");
  const worker =
    entry === undefined ? undefined : { vars: {}, webhooks: false, historyDays: 0, ...configured, entry };
  const wrangler = files[0] ?? configured?.wrangler;
  const added = further.map((file, i) => {
    const ofFile = files[i + 1];
    return { vars: {}, entry: file, ...(ofFile === undefined ? {} : { wrangler: ofFile }) };
  });
  return {
    ...others,
    access,
    modules: [...agents.modules, ...(flags.agents ?? [])],
    workers: [...agents.workers, ...added],
    ...(worker === undefined ? {} : { worker: wrangler === undefined ? worker : { ...worker, wrangler } }),
  };
}

/** A worker is reachable without a token, so the configuration must say that this is intended. Called before the service starts. */
export function checkWorkerAccess({ access, worker, workers }: AgentsSettings): void {
  const hasWorker = worker !== undefined;
  if (!hasWorker && workers.length > 0)
    throw new ConfigError("agents.workers: expected agents.worker, which answers requests, found none");
  if (hasWorker && access !== "worker")
    throw new ConfigError(
      `agents.access: expected "worker", found "${access}": a worker itself decides who may reach it, without tokens of this server; set agents.access to "worker" in the configuration file, or start with --agents-access worker`,
    );
  if (!hasWorker && access === "worker")
    throw new ConfigError('agents.access: "worker" requires agents.worker (or --worker FILE), found none');
}

/** An empty environment variable counts as not set. */
function setting(flag: string | undefined, variable: string | undefined): string | undefined {
  return flag ?? (variable === "" ? undefined : variable);
}

function named(name: string, text: string | undefined): { name: string; text: string } | undefined {
  return text === undefined || text === "" ? undefined : { name, text };
}

/** Either setting enables a separate admin address. */
function parseAdmin(
  flags: ConfigFlags,
  environment: Readonly<Record<string, string | undefined>>,
): Config["admin"] {
  const host = setting(flags.adminHost, environment["ADMIN_HOST"]);
  const port = parsePort("admin-port", flags.adminPort, environment["ADMIN_PORT"]);
  if (host === undefined && port === undefined) return null;
  return { host: host ?? LOOPBACK, port: port ?? DEFAULT_ADMIN_PORT };
}

function parseSwitch(name: string, text: string | undefined): boolean {
  if (text === undefined || text === "" || text === "false" || text === "0") return false;
  if (text === "true" || text === "1") return true;
  throw new ConfigError(`${name}: expected true or false, found "${text}"`);
}

const PORT_VARIABLES = {
  port: "PORT",
  "admin-port": "ADMIN_PORT",
  "cluster-port": "SIGNALBOX_CLUSTER_PORT",
} as const;

function parsePort(
  name: keyof typeof PORT_VARIABLES,
  flag: string | undefined,
  variable: string | undefined,
): number | undefined {
  const text = setting(flag, variable);
  if (text === undefined) return undefined;
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new ConfigError(
      `${flag === undefined ? PORT_VARIABLES[name] : `--${name}`}: expected a number from 0 to 65535, found "${text}"`,
    );
  }
  return port;
}

function parseDatabaseUrl(text: string | undefined): Secret | undefined {
  if (text === undefined) return undefined;
  if (!/^postgres(ql)?:\/\//.test(text)) {
    throw new ConfigError("--database-url (DATABASE_URL): expected postgres://…, found another scheme");
  }
  return new Secret(text);
}

function parseRootToken(text: string | undefined): Secret | undefined {
  if (text === undefined || text === "") return undefined;
  if (text.length < MIN_ROOT_TOKEN_LENGTH) {
    throw new ConfigError(
      `SIGNALBOX_ROOT_TOKEN: expected at least ${MIN_ROOT_TOKEN_LENGTH} characters, found ${text.length}`,
    );
  }
  if (/[^\x21-\x7e]/.test(text)) {
    throw new ConfigError(
      "SIGNALBOX_ROOT_TOKEN: expected printable ASCII without spaces, found another character",
    );
  }
  return new Secret(text);
}

/** Keys separated by commas; more than one during a key rotation. */
function parseEncryptionKeys(text: string | undefined): Secret[] {
  if (text === undefined || text.trim() === "") return [];
  return text.split(",").map((part) => {
    const key = part.trim();
    if (key.length < MIN_ENCRYPTION_KEY_LENGTH) {
      throw new ConfigError(
        `SIGNALBOX_ENCRYPTION_KEY: expected at least ${MIN_ENCRYPTION_KEY_LENGTH} characters per key, found ${key.length}`,
      );
    }
    return new Secret(key);
  });
}

function parseLogLevel(text: string | undefined): LogLevel {
  if (text === undefined) return "info";
  const level = LOG_LEVELS.find((name) => name === text);
  if (level === undefined)
    throw new ConfigError(`--log-level: expected one of ${LOG_LEVELS.join(", ")}, found "${text}"`);
  return level;
}
