/**
 * Decides whether the process may continue after an uncaught error.
 *
 * An uncaught exception unwinds the whole stack. If the outermost frame is server code, a step of the server was interrupted and its state is
 * unknown: the process must stop. If the outermost frame is code of an agent (a timer, an event listener), or the stack has no server code
 * (an `error` event without a listener), no step of the server was interrupted; inner server frames are calls of the agent that failed. Libraries
 * are the server's and the agents': as the outermost frame in the turn of an agent, a library is code of that agent.
 * An `EventTarget` catches what a listener throws and reports it later: the code that dispatched the event was not interrupted.
 *
 * An unhandled rejection ends only the async function that threw it. The process continues, unless the rejection started in storage code: a write
 * may be missing. Transient storage errors are the exception.
 * See docs/decisions/0090.
 */
import { sep } from "node:path";

export type UncaughtKind = "exception" | "rejection";

export interface OwnCode {
  /** Folder of the server code, with a trailing separator. */
  readonly folder: string;
  /** Returns true for storage errors that end by themselves and leave the data unchanged. */
  readonly isTransient: (error: unknown) => boolean;
  /** Returns true when the code that threw belongs to the turn of an agent. */
  readonly isInTurn: () => boolean;
}

export function mayContinue(kind: UncaughtKind, error: unknown, own: OwnCode): boolean {
  const stack = stackOf(error);
  const all = framesOf(kind === "exception" ? interrupted(stack) : stack, own.folder);
  if (kind === "exception" && all.at(-1) === "library" && own.isInTurn()) return true;
  const frames = all.filter((frame) => frame !== "library");
  if (kind === "exception") return frames.at(-1) !== "own" && frames.at(-1) !== "storage";
  return frames[0] !== "storage" || own.isTransient(error);
}

/** Returns an empty text for values without a stack. Server code throws only errors; the linter checks it. */
function stackOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack) : "";
  } catch {
    // The stack is created on first use, and a getter of the error may throw. Errors of the server have no getters.
    return "";
  }
}

/** The part of the stack that the exception has unwound. */
function interrupted(stack: string): string {
  const end = stack.search(/^ {4}at .*\(node:internal\/event_target:/m);
  return end === -1 ? stack : stack.slice(0, end);
}

type Frame = "own" | "storage" | "foreign" | "library";

const LOCATION = /^ {4}at (?:.*\()?((?:file:\/\/|node:)?[^()]+?)(?::\d+){0,2}\)?$/;
const LIBRARY = `${sep}node_modules${sep}`;

/** Returns the frames from the innermost to the outermost, without frames of Node.js. */
function framesOf(stack: string, folder: string): Frame[] {
  const frames: Frame[] = [];
  for (const line of stack.split("\n")) {
    const location = LOCATION.exec(line)?.[1]?.replace("file://", "");
    if (location === undefined || location.startsWith("node:") || !location.includes(sep)) continue;
    if (STORAGE.some((part) => location.startsWith(folder + part))) frames.push("storage");
    else if (location.startsWith(folder)) frames.push("own");
    else frames.push(location.includes(LIBRARY) ? "library" : "foreign");
  }
  return frames;
}

const STORAGE = ["database", "engines/sqlite-file", "engines/instance-store", "engines/call-log"].map(
  (part) => part.replaceAll("/", sep) + sep,
);
