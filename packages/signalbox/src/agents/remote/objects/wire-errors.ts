/** Errors on the wire: name, message, stack, cause, own properties, and the flags that tell callers of objects what to do. */
import { errorClass, finalError, flagsOf, ownProperties } from "../../objects/remote-error.ts";

export interface WireError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly isException: boolean;
  readonly flags: Readonly<Record<string, boolean>>;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly cause?: WireError | { readonly text: string };
  readonly errors?: readonly WireError[];
}

/** Deeper causes are left out: a chain may be a cycle. */
const MAX_DEPTH = 8;

export function describeError(error: Error, depth = 0): WireError {
  const { name, message, stack, cause } = error;
  const isException = error instanceof DOMException;
  return {
    name,
    message,
    stack: typeof stack === "string" ? stack : undefined,
    isException,
    flags: flagsOf(error),
    properties: ownProperties(error),
    ...(cause === undefined || depth >= MAX_DEPTH ? {} : { cause: describeCause(cause, depth + 1) }),
    ...(error instanceof AggregateError && depth < MAX_DEPTH
      ? { errors: error.errors.map((item) => describeError(toError(item), depth + 1)) }
      : {}),
  };
}

function describeCause(cause: unknown, depth: number): WireError | { readonly text: string } {
  return cause instanceof Error ? describeError(cause, depth) : { text: String(cause) };
}

export function errorOf(wire: WireError): Error {
  const { name, message, stack, isException, flags, properties, cause, errors } = wire;
  const options = cause === undefined ? undefined : { cause: "text" in cause ? cause.text : errorOf(cause) };
  let error: Error;
  if (isException) error = new DOMException(message, name);
  else if (errors !== undefined) error = new AggregateError(errors.map(errorOf), message, options);
  else {
    const type = errorClass(name);
    error = new (type ?? Error)(message, options);
  }
  if (error.name !== name)
    Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  if (stack !== undefined)
    Object.defineProperty(error, "stack", { value: stack, configurable: true, writable: true });
  return Object.assign(error, properties, flags);
}

/** What a call on another node threw: an error, or an object that is none. */
export type WireThrown = { readonly error: WireError } | { readonly value: unknown };

export function describeThrown(thrown: unknown): WireThrown {
  return thrown instanceof Error ? { error: describeError(thrown) } : { value: thrown };
}

/** The thrown value for the caller, who gets it as it is. */
export function thrownOf(wire: WireThrown): unknown {
  const thrown = "error" in wire ? errorOf(wire.error) : wire.value;
  return typeof thrown === "object" && thrown !== null ? finalError(thrown) : thrown;
}

function toError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}
