/**
 * Whether the process may go on after an error that nobody caught.
 *
 * An exception unwinds everything below it that runs: if our own code is at the bottom of the stack, one of our steps was left half done, and what it
 * left behind is unknown. If an agent's code is at the bottom (its timer, its emitter), or none of ours is there at all (a socket's `error` event
 * without a listener), nothing of ours was interrupted; that our code stands further up only says that the agent called it, and it threw as it
 * should.
 *
 * A rejection unwinds only the async function that it comes out of, so it leaves nothing else half done. The exception is one that began in
 * storage: there a failure that nobody heard of may be a write that nobody knows to be missing, unless it is one that passes by itself.
 */
import { sep } from "node:path";

export type UncaughtKind = "exception" | "rejection";

export interface OwnCode {
  /** Folder of our code, with a separator at its end. */
  readonly folder: string;
  /** True for failures of storage that pass by themselves and leave it as it was. */
  readonly isPassing: (error: unknown) => boolean;
}

export function isSound(kind: UncaughtKind, error: unknown, own: OwnCode): boolean {
  const frames = framesOf(stackOf(error), own.folder);
  if (kind === "exception") return frames.at(-1) !== "own" && frames.at(-1) !== "storage";
  return frames[0] !== "storage" || own.isPassing(error);
}

/** Empty for what has none: our code throws nothing but errors, which the linter sees to. */
function stackOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack) : "";
  } catch {
    // A stack is made when it is first read, and an error's own getters may throw then. Ours have none.
    return "";
  }
}

type Frame = "own" | "storage" | "foreign";

const LOCATION = /^ {4}at (?:.*\()?((?:file:\/\/|node:)?[^()]+?)(?::\d+){0,2}\)?$/;
const LIBRARY = `${sep}node_modules${sep}`;

/** Innermost first, without frames of Node and of libraries: they run on behalf of somebody. */
function framesOf(stack: string, folder: string): Frame[] {
  const frames: Frame[] = [];
  for (const line of stack.split("\n")) {
    const location = LOCATION.exec(line)?.[1]?.replace("file://", "");
    if (location === undefined || location.startsWith("node:") || !location.includes(sep)) continue;
    if (STORAGE.some((part) => location.startsWith(folder + part))) frames.push("storage");
    else if (location.startsWith(folder)) frames.push("own");
    else if (!location.includes(LIBRARY)) frames.push("foreign");
  }
  return frames;
}

const STORAGE = ["database", "engines/sqlite-file", "engines/instance-store", "engines/call-log"].map(
  (part) => part.replaceAll("/", sep) + sep,
);
