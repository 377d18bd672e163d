/**
 * Errors as they reach the caller of an object. Built-in classes are kept; an error of any other class is an `Error` with its name. `remote` marks an error of the object's code; `retryable` and `overloaded` tell whether and how to try again.
 */
import { SignalboxError } from "@signalbox/protocol";
import { InstanceGoneError } from "../instance/instance-gone-error.ts";

const CLASSES: ReadonlyMap<string, ErrorConstructor> = new Map(
  [Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError].map((type) => [
    type.name,
    type,
  ]),
);

const RETRYABLE: ReadonlySet<string> = new Set(["stopping", "storage_unavailable", "agent_outcome_unknown"]);
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

function rebuild(error: unknown): Error {
  if (!(error instanceof Error)) return copyThrown(error);
  if (error instanceof DOMException) return new DOMException(error.message, error.name);
  const { name, message } = error;
  if (error instanceof AggregateError) return new AggregateError(error.errors.map(rebuild), message);
  const type = CLASSES.get(name);
  const flags = flagsOf(error, RESET_FLAGS);
  const copy = type === undefined ? new Error(message) : new type(message);
  if (type === undefined)
    Object.defineProperty(copy, "name", { value: name, configurable: true, writable: true });
  // The stack of the object's code shows where it failed; both sides are programs of one owner.
  if (error.stack !== undefined) copy.stack = error.stack;
  return Object.assign(copy, flags);
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
  const retryable = RETRYABLE.has(error.id);
  const flags = isOverloaded ? { overloaded: true } : { retryable };
  const text = isOverloaded ? `Durable Object is overloaded. ${error.message}` : error.message;
  return Object.assign(new Error(text, { cause: error }), flags);
}
