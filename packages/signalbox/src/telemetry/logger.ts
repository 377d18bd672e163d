/**
 * Structured logs: one JSON object per line, or readable lines on a terminal.
 *
 * Credentials are `Secret` objects, which print as `[secret]`, and request headers are never logged as a whole. The redaction by key is a
 * second safeguard.
 */
import { plainLine, plainText } from "../core/plain-text.ts";
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";

export type { Logger } from "pino";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const REDACTED_KEYS = ["authorization", "token", "secret", "password", "apiKey", "cookie"];

export interface LoggerOptions {
  readonly level: LogLevel;
  readonly isPretty: boolean;
  /** Default: standard error. Standard output is for the results of commands. */
  readonly destination?: DestinationStream;
}

export function createLogger(options: LoggerOptions): Logger {
  const sink = options.destination ?? process.stderr;
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: REDACTED_KEYS.flatMap((key) => [key, `*.${key}`, `*.headers["${key}"]`]),
        censor: "[secret]",
      },
    },
    options.isPretty ? { write: (line) => void sink.write(prettyLine(line)) } : sink,
  );
}

const COLOURS: Record<string, string> = {
  warn: "\u001b[33m",
  error: "\u001b[31m",
  fatal: "\u001b[31m",
  debug: "\u001b[90m",
};
const RESET = "\u001b[0m";

/** Formats `12:30:05 warn  message key=value …`, with the stack of an error on the following lines, without terminal control characters. */
export function prettyLine(json: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(json) as Record<string, unknown> & {
    level: string;
    time: string;
    msg?: string;
    err?: { stack?: string; message?: string };
  };
  const fields = Object.entries(rest).map(
    ([key, value]) =>
      `${key}=${plainLine(typeof value === "string" ? value : (JSON.stringify(value) ?? ""))}`,
  );
  const head = `${time.slice(11, 19)} ${COLOURS[level] ?? ""}${level.padEnd(5)}${RESET}`;
  const line = [head, msg === undefined ? undefined : plainLine(msg), ...fields]
    .filter((part) => part !== undefined && part !== "")
    .join(" ");
  return err === undefined ? `${line}\n` : `${line}\n${plainText(err.stack ?? err.message ?? "")}\n`;
}
