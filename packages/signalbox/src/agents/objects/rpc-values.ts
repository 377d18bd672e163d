/**
 * Values that cross a call between objects, or between an object and the worker: copied like a structured clone. Functions and `RpcTarget`s become
 * stubs; streams, requests, responses, WebSockets and stubs are passed as they are.
 */
import type { ObjectWork } from "./current-work.ts";
import { ENTRYPOINT, OBJECT, RPC_TARGET } from "./class-marks.ts";
import { ownProperties, toRemoteError } from "./remote-error.ts";
import { type CallTarget, createStub, duplicateForCall, targetOf } from "./rpc-stub.ts";
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
  /** Arguments: targets that can duplicate themselves stay the caller's. */
  readonly isLent?: boolean;
  /** Of texts and bytes, roughly as they would be on a wire. */
  bytes: number;
}

/** As in the originals, and between nodes: programs that need more pass a stream. */
const MAX_BYTES = 32 * 1024 * 1024;

/** Returns undefined for a value that it does not replace. */
export type Replace = (value: object) => unknown;

/** The stubs that belong to a call, by its arguments. */
const ARGUMENT_STUBS = new WeakMap<readonly unknown[], readonly object[]>();

/** Copies the arguments of a call for the other side. Throws `DataCloneError` for what cannot be copied. */
export function transferArguments(args: readonly unknown[], from: Side): unknown[] {
  const stubs: object[] = [];
  const copying = { from, seen: new Map(), stubs, replace: null, bytes: 0, isLent: true };
  const copies = args.map((value) => copy(value, copying));
  checkSize(copying);
  ownStubs(copies, stubs);
  return copies;
}

/** The stubs end with the call that has these arguments. */
export function ownStubs(args: readonly unknown[] | null, stubs: readonly object[]): void {
  if (args !== null && stubs.length > 0) ARGUMENT_STUBS.set(args, stubs);
}

/** Runs a call. The stubs in its arguments end with it: the callee keeps those that it has duplicated. */
export async function endingWith<T>(args: readonly unknown[] | null, call: () => Promise<T>): Promise<T> {
  const stubs = args === null ? undefined : ARGUMENT_STUBS.get(args);
  if (stubs === undefined) return call();
  try {
    return await call();
  } finally {
    for (const stub of stubs) (stub as Disposable)[Symbol.dispose]();
  }
}

/** Copies a value that was transferred before, with replacements for what cannot leave this process. */
export function replaceReferences(value: unknown, replace: Replace): unknown {
  return copy(value, { from: null, seen: new Map(), stubs: [], replace, bytes: 0 });
}

/** Copies the result of a call: `transfer`, and a copy that is an object can be disposed, with the stubs that it contains. */
export function transferResult(value: unknown, from: Side): unknown {
  const stubs: object[] = [];
  const copying = { from, seen: new Map(), stubs, replace: null, bytes: 0 };
  const result = copy(value, copying);
  checkSize(copying);
  if (result !== value) makeDisposable(result, stubs);
  return result;
}

function checkSize({ bytes }: Copying): void {
  if (bytes > MAX_BYTES)
    throw new Error(
      `Serialized RPC arguments or return values are limited to 32MiB, but the size of this value was: ${bytes} bytes.`,
    );
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
  if (typeof value === "string") copying.bytes += value.length;
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return value;
  const { seen } = copying;
  const known = seen.get(value);
  if (known !== undefined) return known;
  const replacement = copying.replace?.(value);
  if (replacement !== undefined) {
    seen.set(value, replacement);
    return replacement;
  }
  if (targetOf(value) !== undefined) {
    const duplicate = duplicateForCall(value);
    seen.set(value, duplicate);
    if (duplicate !== value) copying.stubs.push(duplicate);
    return duplicate;
  }
  if (typeof value === "function" || RPC_TARGET in value || ENTRYPOINT in value) {
    const stub = stubOf(copying.isLent === true ? duplicateOf(value) : value, copying.from);
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
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) copying.bytes += value.byteLength;
    const clone = value instanceof Error ? copyError(value) : structuredClone(value);
    seen.set(value, clone);
    return clone;
  }
  const { name } = value.constructor ?? { name: "Object" };
  throw NEVER_CLONED.has(name) ? refused(`#<${name}>`) : notCloneable(name);
}

/** A structured clone keeps the names of built-in classes only, and no properties of the program. */
function copyError(error: Error): Error {
  const copy = Object.assign(structuredClone(error), ownProperties(error));
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

/** A target that can duplicate itself stays the caller's: the call gets a duplicate, which is disposed with it. */
function duplicateOf(value: object): object {
  const { dup } = value as { dup?: () => object };
  return typeof dup === "function" ? Reflect.apply(dup, value, []) : value;
}

/** A stub of a function or an `RpcTarget`: calls run as events of the side that the value belongs to. */
function stubOf(value: object, from: Side): object {
  const target: CallTarget = {
    send: async (path, args) => {
      const work = () => reach(value, path, args);
      try {
        return await endingWith(args, async () => {
          const result = from === null ? await work() : await from.enter(`rpc ${path.join(".")}`, work);
          return transferResult(result, from);
        });
      } catch (error) {
        throw toRemoteError(error);
      }
    },
    dispose: () => (value as { [Symbol.dispose]?: () => void })[Symbol.dispose]?.(),
  };
  return createStub(target);
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
    // Through the value itself: it may be a proxy.
    return (value as Record<string, unknown>)[name];
  }
  if (!Object.hasOwn(value, name)) throw unknownMember(name);
  return (value as Record<string, unknown>)[name];
}

function unknownMember(name: string): TypeError {
  return new TypeError(`The RPC receiver does not implement the method "${name}".`);
}
