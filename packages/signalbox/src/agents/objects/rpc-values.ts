/**
 * Values that cross a call between objects, or between an object and the worker: copied like a structured clone. Functions and `RpcTarget`s become
 * stubs; streams, requests, responses, WebSockets and stubs are passed as they are.
 */
import type { ObjectWork } from "./current-work.ts";
import { ENTRYPOINT, OBJECT, RPC_TARGET } from "./marks.ts";
import { toRemoteError } from "./remote-error.ts";
import { type CallTarget, createStub, targetOf } from "./rpc-stub.ts";
import { WorkerWebSocket } from "./web-socket.ts";

/** The side of a call that a value comes from: an object, or null for the worker. */
export type Side = ObjectWork | null;

let byReference: readonly (abstract new (...args: never[]) => object)[] | undefined;

/** Classes whose values are passed by reference. Made on first use: naming `Request` loads Node's HTTP client, which most servers do not need. */
function referenceClasses(): readonly (abstract new (...args: never[]) => object)[] {
  byReference ??= [
    Request,
    Response,
    Headers,
    ReadableStream,
    WritableStream,
    TransformStream,
    AbortSignal,
    Blob,
    FormData,
    URL,
    URLSearchParams,
    WorkerWebSocket,
  ];
  return byReference;
}

/** Own methods of objects that are no calls. */
const RESERVED: ReadonlySet<string> = new Set([
  "constructor",
  "alarm",
  "webSocketMessage",
  "webSocketClose",
  "webSocketError",
]);

const OWN = { enumerable: true, configurable: true, writable: true };

/** One copy of a value. */
interface Copying {
  readonly from: Side;
  readonly seen: Map<object, unknown>;
  /** The stubs that the copy contains. */
  readonly stubs: object[];
  /** Replaces values that are passed by reference, and others that have no plain copy; null: they stay as they are. */
  readonly replace: Replace | null;
}

/** Returns undefined for a value that it does not replace. */
export type Replace = (value: object) => unknown;

/** Copies an argument for the other side. Throws `DataCloneError` for what cannot be copied. */
export function transfer(value: unknown, from: Side): unknown {
  return copy(value, { from, seen: new Map(), stubs: [], replace: null });
}

/** Copies a value that was transferred before, with replacements for what cannot leave this process. */
export function replaceReferences(value: unknown, replace: Replace): unknown {
  return copy(value, { from: null, seen: new Map(), stubs: [], replace });
}

/** Copies the result of a call: `transfer`, and a copy that is an object can be disposed, with the stubs that it contains. */
export function transferResult(value: unknown, from: Side): unknown {
  const stubs: object[] = [];
  const result = copy(value, { from, seen: new Map(), stubs, replace: null });
  if (result !== value) makeDisposable(result, stubs);
  return result;
}

/** A result that is an object is disposed with the stubs that it contains. */
export function makeDisposable(result: unknown, stubs: readonly object[]): void {
  if (typeof result !== "object" || result === null || targetOf(result) !== undefined) return;
  Object.defineProperty(result, Symbol.dispose, {
    value: () => {
      for (const stub of stubs) (stub as Disposable)[Symbol.dispose]();
    },
    configurable: true,
    writable: true,
  });
}

function copy(value: unknown, copying: Copying): unknown {
  if (typeof value === "symbol") throw refused(String(value));
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return value;
  const { seen } = copying;
  const known = seen.get(value);
  if (known !== undefined) return known;
  const replacement = copying.replace?.(value);
  if (replacement !== undefined) {
    seen.set(value, replacement);
    return replacement;
  }
  if (targetOf(value) !== undefined) return value;
  if (typeof value === "function" || RPC_TARGET in value || ENTRYPOINT in value) {
    const stub = stubOf(value, copying.from);
    copying.stubs.push(stub);
    return stub;
  }
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    seen.set(value, items);
    for (const item of value) items.push(copy(item, copying));
    return items;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    const result: Record<string, unknown> = {};
    seen.set(value, result);
    for (const [name, property] of Object.entries(value)) {
      const copied = copy(property, copying);
      // An assignment would set the prototype.
      if (name === "__proto__") Object.defineProperty(result, name, { ...OWN, value: copied });
      else result[name] = copied;
    }
    return result;
  }
  return copySpecial(value, copying);
}

function copySpecial(value: object, copying: Copying): unknown {
  const { seen } = copying;
  if (value instanceof Map) {
    const entries = new Map<unknown, unknown>();
    seen.set(value, entries);
    for (const [key, item] of value) entries.set(copy(key, copying), copy(item, copying));
    return entries;
  }
  if (value instanceof Set) {
    const items = new Set<unknown>();
    seen.set(value, items);
    for (const item of value) items.add(copy(item, copying));
    return items;
  }
  if (referenceClasses().some((type) => value instanceof type)) return value;
  if (value instanceof Error || isCloneable(value)) {
    const clone = value instanceof Error ? copyError(value) : structuredClone(value);
    seen.set(value, clone);
    return clone;
  }
  const { name } = value.constructor ?? { name: "Object" };
  throw NEVER_CLONED.has(name) ? refused(`#<${name}>`) : notCloneable(name);
}

/** A structured clone keeps the names of built-in classes only. */
function copyError(error: Error): Error {
  const copy = structuredClone(error);
  if (copy.name !== error.name)
    Object.defineProperty(copy, "name", { value: error.name, configurable: true, writable: true });
  return copy;
}

function isCloneable(value: object): boolean {
  return (
    value instanceof Date ||
    value instanceof RegExp ||
    value instanceof ArrayBuffer ||
    ArrayBuffer.isView(value)
  );
}

/** Classes of the language that no clone can hold. */
const NEVER_CLONED: ReadonlySet<string> = new Set(["WeakMap", "WeakSet", "WeakRef", "Promise"]);

export function refused(text: string): DOMException {
  return new DOMException(`${text} could not be cloned.`, "DataCloneError");
}

function notCloneable(type: string): DOMException {
  return new DOMException(
    `Could not serialize object of type "${type}". This type does not support serialization.`,
    "DataCloneError",
  );
}

/** A stub of a function or an `RpcTarget`: calls run as events of the side that the value belongs to. */
function stubOf(value: object, from: Side): object {
  const target: CallTarget = {
    send: async (path, args) => {
      const work = () => reach(value, path, args);
      try {
        const result = from === null ? await work() : await from.enter(`rpc ${path.join(".")}`, work);
        return transferResult(result, from);
      } catch (error) {
        throw toRemoteError(error);
      }
    },
    dispose: () => (value as { [Symbol.dispose]?: () => void })[Symbol.dispose]?.(),
  };
  return createStub(target, { isCallable: typeof value === "function" });
}

/**
 * Calls or reads what the path names. Of objects and `RpcTarget`s only members of their classes can be reached, of plain values only their own
 * properties.
 */
export async function reach(
  start: unknown,
  path: readonly string[],
  args: readonly unknown[] | null,
): Promise<unknown> {
  let holder: unknown;
  let value = start;
  for (const [i, name] of path.entries()) {
    if ((typeof value === "object" || typeof value === "function") && value !== null) {
      const target = targetOf(value);
      if (target !== undefined) return target.send(path.slice(i), args);
    }
    holder = value;
    value = memberOf(value, name);
    if (i < path.length - 1) value = await value;
  }
  if (args === null) return value;
  const name = path.at(-1) ?? "";
  if (typeof value !== "function") throw unknownMember(name);
  return Reflect.apply(value, holder, args);
}

function memberOf(value: unknown, name: string): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) throw unknownMember(name);
  if (OBJECT in value || RPC_TARGET in value || ENTRYPOINT in value) {
    if (RESERVED.has(name) && OBJECT in value)
      throw new TypeError(`'${name}' is a reserved method and cannot be called over RPC.`);
    const prototype = Object.getPrototypeOf(value) as object;
    if (Object.hasOwn(value, name) || !(name in prototype) || name in Object.prototype)
      throw unknownMember(name);
    return Reflect.get(prototype, name, value);
  }
  if (!Object.hasOwn(value, name)) throw unknownMember(name);
  return (value as Record<string, unknown>)[name];
}

function unknownMember(name: string): TypeError {
  return new TypeError(`The RPC receiver does not implement the method "${name}".`);
}
