/** Options shared by several commands. */
import type { CommandOption } from "./command.ts";

/** Options of all commands. */
export const COMMON_OPTIONS: readonly CommandOption[] = [
  {
    name: "output",
    value: "FORMAT",
    summary: "table or json: the document of the management interface; errors are JSON, too",
    values: ["table", "json"],
  },
  { name: "json", summary: "short for --output json" },
  { name: "wide", summary: "show all columns and exact times, also where the terminal is too narrow" },
  { name: "verbose", summary: "print the server and the account that the command uses to standard error" },
  { name: "help", summary: "show this help" },
];

export const DATA_FOLDER_OPTIONS: readonly CommandOption[] = [
  { name: "data-dir", value: "DIR", summary: "data folder (SIGNALBOX_DATA_DIR, default ./.signalbox)" },
  {
    name: "config",
    value: "FILE",
    summary: "configuration file (default signalbox.config.{ts,mts,cts,js,mjs,cjs,json})",
  },
  { name: "database-url", value: "URL", summary: "PostgreSQL instead of embedded SQLite (DATABASE_URL)" },
  {
    name: "agents",
    value: "FILE",
    summary: "file that exports agent classes (repeatable; see also agents.modules in the configuration)",
    isRepeatable: true,
  },
  { name: "env-file", value: "FILE", summary: "read environment variables from a file" },
  {
    name: "log-level",
    value: "LEVEL",
    summary: "trace, debug, info, warn, error, fatal or silent (SIGNALBOX_LOG_LEVEL)",
    values: ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
  },
];

export const SERVE_OPTIONS: readonly CommandOption[] = [
  { name: "port", value: "PORT", summary: "port to listen on; 0 selects a free port (PORT, default 8787)" },
  { name: "host", value: "HOST", summary: "address to listen on (HOST, default 127.0.0.1)" },
  {
    name: "admin-port",
    value: "PORT",
    summary:
      "separate port for dashboard and management interface (ADMIN_PORT, default 8788 with --admin-host)",
  },
  {
    name: "admin-host",
    value: "HOST",
    summary: "separate address for dashboard and management interface (ADMIN_HOST, default 127.0.0.1)",
  },
  {
    name: "tls-cert",
    value: "FILE",
    summary: "certificate (PEM) for HTTPS; read again when it changes (SIGNALBOX_TLS_CERT, default: HTTP)",
  },
  { name: "tls-key", value: "FILE", summary: "private key of the certificate (SIGNALBOX_TLS_KEY)" },
  {
    name: "metrics-public",
    summary: "serve /metrics without a token even if other machines can reach it (METRICS_PUBLIC)",
  },
  {
    name: "cluster-host",
    value: "HOST",
    summary:
      "address at which other nodes reach this one (SIGNALBOX_CLUSTER_HOST, default: --host, or an address of this machine for 0.0.0.0)",
  },
  {
    name: "cluster-port",
    value: "PORT",
    summary: "port for other nodes; 0 selects a free port (SIGNALBOX_CLUSTER_PORT, default 0)",
  },
  {
    name: "node-name",
    value: "NAME",
    summary: "name of this node in lists and metrics (SIGNALBOX_NODE_NAME, default: the host name)",
  },
  {
    name: "processes",
    value: "COUNT",
    summary:
      "processes that serve together behind the one port, with PostgreSQL and SIGNALBOX_CLUSTER_SECRET: a number, or auto for one per core (SIGNALBOX_PROCESSES, cluster.processes, default 1)",
    values: ["auto"],
  },
  {
    name: "worker",
    value: "FILE",
    summary:
      "program written for Cloudflare Workers (agents.worker.entry; see the guide); repeatable for workers that it has service bindings to",
    isRepeatable: true,
  },
  {
    name: "wrangler",
    value: "FILE",
    summary:
      "wrangler.jsonc, .json or .toml of the worker (default: beside the entry or above it); repeatable, in the order of --worker",
    isRepeatable: true,
  },
  {
    name: "agents-access",
    value: "ACCESS",
    summary: "who may reach agents: token, public or worker (agents.access, default token)",
    values: ["token", "public", "worker"],
  },
  {
    // Evaluated by bin/reexec.js, before this module is loaded.
    name: "no-reexec",
    summary: "do not restart the process with memory settings at start (SIGNALBOX_NO_REEXEC)",
  },
  ...DATA_FOLDER_OPTIONS,
];

/** Options of commands that use the management interface. */
export const CLIENT_OPTIONS: readonly CommandOption[] = [
  {
    name: "url",
    value: "URL",
    summary: "address of the server (SIGNALBOX_URL; default: the server on the data folder)",
  },
  {
    name: "token",
    value: "TOKEN",
    summary: "token (SIGNALBOX_TOKEN; default: the root token of the data folder)",
  },
  ...DATA_FOLDER_OPTIONS,
];

export const ACCOUNT_OPTION: CommandOption = {
  name: "account",
  value: "ID",
  summary: "account (default: default)",
};
