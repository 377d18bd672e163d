/** Inside of the process of a loaded program: what a call writes to `console`, for the log of the server and for tail workers. */
import { AsyncLocalStorage } from "node:async_hooks";
import { format } from "node:util";

export interface LogLine {
  readonly level: string;
  readonly message: readonly unknown[];
  readonly timestamp: number;
}

export interface InvocationTrace {
  readonly logs: LogLine[];
  readonly exceptions: { name: string; message: string; stack: string | undefined; timestamp: number }[];
  readonly eventTimestamp: number;
  outcome: "ok" | "exception";
  /** Requests to the network so far. */
  requests: number;
}

const LEVELS = ["debug", "error", "info", "log", "trace", "warn"];
/** Of one call: a program that writes more is not to fill the memory of the server. */
const MAX_LINES = 256;
const MAX_LINE_LENGTH = 8 * 1024;

const running = new AsyncLocalStorage<InvocationTrace>();

export function startTrace(): InvocationTrace {
  return { logs: [], exceptions: [], eventTimestamp: Date.now(), outcome: "ok", requests: 0 };
}

export function within<T>(trace: InvocationTrace, work: () => T): T {
  return running.run(trace, work);
}

export function recordException(trace: InvocationTrace, error: unknown): void {
  trace.outcome = "exception";
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  trace.exceptions.push({ name, message, stack, timestamp: Date.now() });
}

/** Throws when the call that runs has made as many requests as it may. */
export function countRequest(max: number | null): void {
  const trace = running.getStore();
  if (trace === undefined || max === null) return;
  trace.requests += 1;
  if (trace.requests > max) throw new Error("Too many subrequests.");
}

function write(level: string, values: readonly unknown[]): void {
  const trace = running.getStore();
  if (trace === undefined || trace.logs.length >= MAX_LINES) return;
  const text = format(...values).slice(0, MAX_LINE_LENGTH);
  trace.logs.push({ level, message: [text], timestamp: Date.now() });
}

/** An error that no code of the program has caught. */
export function logError(error: unknown): void {
  write("error", [error]);
}

/** Replaces `console`: its functions write to the call that runs. */
export function installConsole(): void {
  const nothing = () => undefined;
  const others = [
    "assert",
    "clear",
    "count",
    "countReset",
    "dir",
    "dirxml",
    "group",
    "groupCollapsed",
    "groupEnd",
    "table",
    "time",
    "timeEnd",
    "timeLog",
  ];
  const console = {
    ...Object.fromEntries(others.map((name) => [name, nothing])),
    ...Object.fromEntries(LEVELS.map((level) => [level, (...values: unknown[]) => write(level, values)])),
  };
  Object.defineProperty(globalThis, "console", { value: console, writable: true, configurable: true });
}
