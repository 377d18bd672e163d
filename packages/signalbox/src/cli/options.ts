/** Options that several commands share. */
import type { CommandOption } from "./command.ts";

/** Every command has these. */
export const COMMON_OPTIONS: readonly CommandOption[] = [
  { name: "json", summary: "machine-readable output" },
  { name: "help", summary: "show this help" },
];

export const DATA_FOLDER_OPTIONS: readonly CommandOption[] = [
  { name: "data-dir", value: "DIR", summary: "data folder (SIGNALBOX_DATA_DIR, default ./.signalbox)" },
  { name: "config", value: "FILE", summary: "configuration file (default signalbox.config.{ts,js,json})" },
  { name: "database-url", value: "URL", summary: "PostgreSQL instead of embedded SQLite (DATABASE_URL)" },
  {
    name: "agents",
    value: "FILE",
    summary: "file that exports agent classes (repeatable; also agents.modules in the configuration)",
    isRepeatable: true,
  },
  { name: "env-file", value: "FILE", summary: "read environment variables from a file" },
  {
    name: "log-level",
    value: "LEVEL",
    summary: "trace, debug, info, warn, error, fatal or silent (SIGNALBOX_LOG_LEVEL)",
  },
];

export const SERVE_OPTIONS: readonly CommandOption[] = [
  { name: "port", value: "PORT", summary: "port to listen on, 0 for a free one (PORT, default 8787)" },
  { name: "host", value: "HOST", summary: "address to listen on (HOST, default 127.0.0.1)" },
  {
    name: "admin-port",
    value: "PORT",
    summary:
      "serve dashboard and management on a port of their own (ADMIN_PORT, default 8788 with --admin-host)",
  },
  {
    name: "admin-host",
    value: "HOST",
    summary: "serve dashboard and management on an address of their own (ADMIN_HOST, default 127.0.0.1)",
  },
  {
    name: "metrics-public",
    summary: "answer /metrics without a token also where other machines reach it (METRICS_PUBLIC)",
  },
  {
    // Evaluated by bin/reexec.js, before this module is loaded.
    name: "no-reexec",
    summary: "do not restart the process with memory settings at start (SIGNALBOX_NO_REEXEC)",
  },
  ...DATA_FOLDER_OPTIONS,
];

/** For commands that talk to the management interface. */
export const CLIENT_OPTIONS: readonly CommandOption[] = [
  {
    name: "url",
    value: "URL",
    summary: "server to talk to (SIGNALBOX_URL; default: the one on the data folder)",
  },
  {
    name: "token",
    value: "TOKEN",
    summary: "token to use (SIGNALBOX_TOKEN; default: the data folder's root token)",
  },
  ...DATA_FOLDER_OPTIONS,
];

export const ACCOUNT_OPTION: CommandOption = {
  name: "account",
  value: "ID",
  summary: "account (default: default)",
};
