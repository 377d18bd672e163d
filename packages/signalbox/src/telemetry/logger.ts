/**
 * Structured logs: one JSON object per line, or readable lines on a terminal.
 *
 * Credentials are `Secret` objects, which print as `[secret]`, and request headers are never logged as a whole. The redaction by key is a
 * second safeguard.
 */
import { withoutOwnFrames } from "../core/own-frames.ts";
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
  /** Receives the fields of every line as they were passed, e.g. an error as the object that was thrown. */
  readonly observe?: (fields: unknown, message: string | undefined) => void;
}

export function createLogger(options: LoggerOptions): Logger {
  const sink = options.destination ?? process.stderr;
  const { observe } = options;
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
      ...(observe === undefined
        ? {}
        : {
            hooks: {
              logMethod(args, method) {
                const [fields, message] = args;
                observe(fields, message);
                method.apply(this, args);
              },
            },
          }),
    },
    options.isPretty
      ? { write: (line) => void sink.write(prettyLine(line, DETAILED.has(options.level))) }
      : sink,
  );
}

/** Levels at which a stack on a terminal has the frames of this package, too. */
const DETAILED: ReadonlySet<LogLevel> = new Set(["trace", "debug"]);

const COLOURS: Record<string, string> = {
  warn: "\u001b[33m",
  error: "\u001b[31m",
  fatal: "\u001b[31m",
  debug: "\u001b[90m",
};
const RESET = "\u001b[0m";
/** https://no-color.org */
const hasColours = () => !process.env["NO_COLOR"];

/** Formats `12:30:05 warn  message key=value …`, with the stack of an error on the following lines, without terminal control characters. */
function prettyLine(json: string, hasAllFrames: boolean): string {
  const { level, time, msg, err, ...rest } = JSON.parse(json) as Record<string, unknown> & {
    level: string;
    time: string;
    msg?: string;
    err?: unknown;
  };
  const fields = Object.entries(rest).map(
    ([key, value]) =>
      `${key}=${plainLine(typeof value === "string" ? value : (JSON.stringify(value) ?? ""))}`,
  );
  const shown = level.padEnd(5);
  const head = `${time.slice(11, 19)} ${hasColours() ? `${COLOURS[level] ?? ""}${shown}${RESET}` : shown}`;
  const line = [head, msg === undefined ? undefined : plainLine(msg), ...fields]
    .filter((part) => part !== undefined && part !== "")
    .join(" ");
  return err === undefined
    ? `${line}\n`
    : `${line}\n${plainText(hasAllFrames ? errorText(err) : withoutOwnFrames(errorText(err)))}\n`;
}

/** Code of agents may throw anything, and its errors may have any properties. */
function errorText(err: unknown): string {
  if (typeof err !== "object" || err === null) return String(err);
  const { stack, message } = err as { readonly stack?: unknown; readonly message?: unknown };
  return [stack, message].find((text) => typeof text === "string") ?? "";
}
