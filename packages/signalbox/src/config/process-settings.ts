/** The settings of the process: options of `serve` and variables of the environment. The configuration reference and `signalbox config` list them. */

export interface ProcessSetting {
  /** As the configuration reference names it. */
  readonly name: string;
  /** Option of `serve`, without the dashes. */
  readonly option?: string;
  /** Environment variable. */
  readonly variable?: string;
  /** As text; absent if there is none. */
  readonly default?: string;
  readonly meaning: string;
  /** The value is not shown. */
  readonly isSecret?: boolean;
}

export const PROCESS_SETTINGS: readonly ProcessSetting[] = [
  {
    name: "port",
    option: "port",
    variable: "PORT",
    default: "8787",
    meaning: "Port of the service; 0 selects a free one.",
  },
  { name: "host", option: "host", variable: "HOST", default: "127.0.0.1", meaning: "Address to listen on." },
  {
    name: "admin-port",
    option: "admin-port",
    variable: "ADMIN_PORT",
    default: "8788 if an admin address is set",
    meaning: "Port of a separate address for the dashboard and the management interface.",
  },
  {
    name: "admin-host",
    option: "admin-host",
    variable: "ADMIN_HOST",
    default: "127.0.0.1 if an admin port is set",
    meaning: "Host of that address.",
  },
  {
    name: "tls-cert",
    option: "tls-cert",
    variable: "SIGNALBOX_TLS_CERT",
    meaning:
      "PEM file with the certificate of the server and the intermediate ones: HTTPS and WSS instead of HTTP.",
  },
  {
    name: "tls-key",
    option: "tls-key",
    variable: "SIGNALBOX_TLS_KEY",
    meaning: "PEM file with the private key of the certificate, without a passphrase.",
  },
  {
    name: "metrics-public",
    option: "metrics-public",
    variable: "METRICS_PUBLIC",
    default: "false",
    meaning: "Serves `/metrics` without a token on an address that other machines can reach.",
  },
  {
    name: "data-dir",
    option: "data-dir",
    variable: "SIGNALBOX_DATA_DIR",
    default: "./.signalbox",
    meaning: "The data folder. One process uses it at a time.",
  },
  {
    name: "config",
    option: "config",
    default: "signalbox.config.{ts,mts,cts,js,mjs,cjs,json} in the working folder, if there is one",
    meaning: "The configuration file.",
  },
  {
    name: "database-url",
    option: "database-url",
    variable: "DATABASE_URL",
    default: "embedded SQLite in the data folder",
    meaning:
      "PostgreSQL, as `postgres://user:password@host/database`; several hosts are separated by commas.",
    isSecret: true,
  },
  {
    name: "node-name",
    option: "node-name",
    variable: "SIGNALBOX_NODE_NAME",
    default: "the name of the machine",
    meaning: "Name of this node in lists, logs and metrics.",
  },
  {
    name: "cluster-host",
    option: "cluster-host",
    variable: "SIGNALBOX_CLUSTER_HOST",
    default: "the value of `host`; for `0.0.0.0` or `::`, an address of this machine",
    meaning: "Address at which other nodes reach this one.",
  },
  {
    name: "cluster-port",
    option: "cluster-port",
    variable: "SIGNALBOX_CLUSTER_PORT",
    default: "a free port",
    meaning: "Port of that address.",
  },
  {
    name: "processes",
    variable: "SIGNALBOX_PROCESSES",
    default: "the value of `cluster.processes`",
    meaning: "Processes of this machine that serve together: a number, or `auto` for one per core.",
  },
  {
    name: "log-level",
    option: "log-level",
    variable: "SIGNALBOX_LOG_LEVEL",
    default: "info",
    meaning: "`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`.",
  },
  {
    name: "env-file",
    option: "env-file",
    meaning:
      "File with environment variables, one `NAME=value` per line; variables of the process take precedence.",
  },
  {
    name: "root token",
    variable: "SIGNALBOX_ROOT_TOKEN",
    default: "generated once, in the file `root-token` of the data folder",
    meaning: "The root token: at least 20 printable ASCII characters. Required for a cluster.",
    isSecret: true,
  },
  {
    name: "encryption key",
    variable: "SIGNALBOX_ENCRYPTION_KEY",
    default: "generated once, in the file `encryption-key` of the data folder",
    meaning:
      "Encrypts the headers of custom providers and the secrets of alerts: at least 32 characters; several, separated by commas, to replace one. Required for a cluster.",
    isSecret: true,
  },
  {
    name: "master key",
    variable: "SIGNALBOX_MASTER_KEY",
    default: "generated once, in the file `master-key` of the data folder",
    meaning:
      "Encrypts stored provider keys: 32 bytes as 64 hexadecimal digits or in base64; several, separated by commas, to replace one. Required with PostgreSQL to store provider keys.",
    isSecret: true,
  },
  {
    name: "master key file",
    variable: "SIGNALBOX_MASTER_KEY_FILE",
    meaning: "File with the master key, in place of the variable.",
  },
  {
    name: "cluster secret",
    variable: "SIGNALBOX_CLUSTER_SECRET",
    meaning: "Makes this process a node of a cluster: at least 32 characters, the same on all nodes.",
    isSecret: true,
  },
  {
    name: "webhook secret",
    variable: "WEBHOOK_SECRET",
    default: "generated once, in the file `webhook-secret` of the data folder; none with PostgreSQL",
    meaning: "Verifies generic webhooks. Other sources use `<NAME>_WEBHOOK_SECRET`.",
    isSecret: true,
  },
];

/** Options of `serve` that set a key of the configuration file. */
export const OPTIONS_OF_KEYS: Readonly<Record<string, string>> = {
  "agents.modules": "agents",
  "agents.access": "agents-access",
  "agents.worker.entry": "worker",
  "agents.worker.wrangler": "wrangler",
  "cluster.processes": "processes",
};
