/** An error as it is stored and shown to operators: of bounded size, whatever was thrown. */
import { SignalboxError } from "@signalbox/protocol";
import { withoutNul } from "./without-nul.ts";

export interface StoredError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
}

const MAX_NAME = 100;
const MAX_MESSAGE = 2000;
/** About forty frames. */
const MAX_STACK = 6000;
/** Errors that caused the error, as far as they are shown. */
const MAX_CAUSES = 3;

/** An error of the table has its name in the table and no stack: its code is the service's. Its cause, if any, tells more. */
export function toStoredError(error: unknown): StoredError {
  try {
    return describe(error);
  } catch {
    // An object whose properties throw.
    return { name: "Error", message: "the error cannot be read", stack: null };
  }
}

/** The message alone, of any length: as `String` gives it, but also for a value that has no text. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return toStoredError(error).message;
  }
}

/** Name and message, in one line or more. */
export function storedErrorText({ name, message }: Pick<StoredError, "name" | "message">): string {
  return `${name}: ${message}`;
}

function describe(error: unknown): StoredError {
  if (error instanceof SignalboxError) {
    const { cause } = error;
    if (cause instanceof Error && !(cause instanceof SignalboxError))
      return { ...describe(cause), message: cut(error.message, MAX_MESSAGE), stack: stackOf(cause) };
    return { name: error.id, message: cut(error.message, MAX_MESSAGE), stack: null };
  }
  if (!(error instanceof Error))
    return { name: "Error", message: cut(`threw ${textOf(error)}`, MAX_MESSAGE), stack: null };
  const { name, message } = asFound(error);
  return {
    name: cut(String(name), MAX_NAME),
    message: cut(String(message), MAX_MESSAGE),
    stack: stackOf(error),
  };
}

function stackOf(error: Error): string | null {
  let text = stackText(error);
  let { cause } = error;
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth++) {
    text += `\ncaused by ${stackText(cause)}`;
    ({ cause } = cause);
  }
  return text === "" ? null : cut(text, MAX_STACK);
}

function stackText(error: Error): string {
  const { stack } = asFound(error);
  return typeof stack === "string" ? stack : "";
}

/** Code of agents may have set them to anything. */
function asFound(error: Error): { readonly [Name in "name" | "message" | "stack"]?: unknown } {
  return error;
}

function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return JSON.stringify(value) ?? "an object";
}

function cut(text: string, length: number): string {
  return withoutNul(text.length <= length ? text : `${text.slice(0, length)}…`);
}
