/**
 * Errors as they reach the caller of an object. Built-in classes are kept; an error of any other class is an `Error` with its name. Its own properties, such as `code`, are
 * kept as far as they can be copied. `remote` marks an error of the object's code; `retryable` and `overloaded` tell whether and how to try again.
 */
import { SignalboxError } from "@signalbox/protocol";
import { hasFlag } from "./compatibility.ts";
import { InstanceGoneError } from "../instance/instance-gone-error.ts";

const CLASSES: ReadonlyMap<string, ErrorConstructor> = new Map(
  [Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError].map((type) => [
    type.name,
    type,
  ]),
);

/** The status of every failure around an object. */
const UNAVAILABLE = 503;
const RESET_FLAGS = ["retryable", "overloaded", "durableObjectReset"];
const FLAGS = [...RESET_FLAGS, "remote"];

/** Errors that another node has made for the caller. */
const FINAL = new WeakSet<object>();

/** Marks what `toRemoteError` returns as it is. */
export function finalError<T extends object>(error: T): T {
  FINAL.add(error);
  return error;
}

/** The built-in class of a name; undefined for other names. */
export function errorClass(name: string): ErrorConstructor | undefined {
  return CLASSES.get(name);
}

/** The error for the caller of an object that threw. */
export function toRemoteError(error: unknown): Error {
  if (typeof error === "object" && error !== null && FINAL.has(error)) return error as Error;
  if (error instanceof SignalboxError || error instanceof InstanceGoneError) return toHostError(error);
  const copy = rebuild(error);
  // The reset of an object is an error of the host, whatever its reason.
  return (error as { durableObjectReset?: boolean } | null)?.durableObjectReset === true
    ? copy
    : Object.assign(copy, { remote: true });
}

/** Deeper causes are left out: a chain may be a cycle. */
const MAX_DEPTH = 8;
const STANDARD: ReadonlySet<string> = new Set(["name", "message", "stack", "cause", "errors"]);

/** What a program has added to an error, as far as it can be copied. */
export function ownProperties(error: Error): Record<string, unknown> {
  const properties: Record<string, unknown> = {};
  if (!hasFlag("enhanced_error_serialization")) return properties;
  for (const [name, value] of Object.entries(error)) {
    if (STANDARD.has(name)) continue;
    try {
      properties[name] = structuredClone(value);
    } catch {
      // A function, for example.
    }
  }
  return properties;
}

function rebuild(error: unknown, depth = 0): Error {
  if (!(error instanceof Error)) return copyThrown(error);
  if (error instanceof DOMException)
    return Object.assign(new DOMException(error.message, error.name), ownProperties(error));
  const { name, message, cause } = error;
  const options =
    cause === undefined || depth >= MAX_DEPTH ? undefined : { cause: rebuildCause(cause, depth + 1) };
  if (error instanceof AggregateError)
    return Object.assign(
      new AggregateError(
        error.errors.map((item) => rebuild(item, depth + 1)),
        message,
        options,
      ),
      ownProperties(error),
    );
  const type = CLASSES.get(name);
  const flags = { ...ownProperties(error), ...flagsOf(error, RESET_FLAGS) };
  const copy = type === undefined ? new Error(message, options) : new type(message, options);
  if (type === undefined)
    Object.defineProperty(copy, "name", { value: name, configurable: true, writable: true });
  // The stack of the object's code shows where it failed; both sides are programs of one owner.
  if (error.stack !== undefined) copy.stack = error.stack;
  return Object.assign(copy, flags);
}

function rebuildCause(cause: unknown, depth: number): unknown {
  if (cause instanceof Error) return rebuild(cause, depth);
  try {
    return structuredClone(cause);
  } catch {
    return String(cause);
  }
}

/** Programs may throw objects that are no errors, and catch them by their properties. */
function copyThrown(thrown: unknown): Error {
  const text = String(thrown);
  if (typeof thrown !== "object" || thrown === null) return new Error(text);
  try {
    return structuredClone(thrown) as Error;
  } catch {
    return new Error(text);
  }
}

/** Flags that a call further down has set stay. */
export function flagsOf(error: Error, names: readonly string[] = FLAGS): Record<string, boolean> {
  const flags: Record<string, boolean> = {};
  for (const name of names) {
    if ((error as unknown as Record<string, unknown>)[name] === true) flags[name] = true;
  }
  return flags;
}

/** The object could not take the call, or left memory in the middle of it. */
function toHostError(error: SignalboxError | InstanceGoneError): Error {
  if (error instanceof InstanceGoneError)
    return Object.assign(new Error(error.message, { cause: error }), {
      retryable: true,
      durableObjectReset: true,
    });
  const isOverloaded = error.id === "overloaded";
  // A failure around the object, and not of its code. As in the originals, also if the call may have been carried out.
  const retryable = error.status === UNAVAILABLE;
  const flags = isOverloaded ? { overloaded: true } : { retryable };
  const text = isOverloaded ? `Durable Object is overloaded. ${error.message}` : error.message;
  return Object.assign(new Error(text, { cause: error }), flags);
}
