/**
 * Stubs: values that stand for something on the other side of a call. `stub.a.b(1)` sends one call with the path `a.b`; `await stub.a` reads a
 * property; a call on the promise of another call (`stub.a().b()`) waits for it here.
 *
 * Invariants:
 * 1. A stub has no `then`: awaiting a stub gives the stub. A property of a stub and the result of a call have one.
 * 2. Stubs of one target share its life: the target's disposer runs when the last stub and duplicate was disposed.
 * 3. A call owns duplicates of the stubs in its arguments, which end with it: a callee that keeps a stub keeps a duplicate (`dup()`). Stubs of objects and
 *    entrypoints have nothing to dispose and are passed as they are.
 */

import type { ObjectAddress } from "./object-calls.ts";

/** The other side of a stub. */
export interface CallTarget {
  /** Calls what the path names, or reads it if `args` is null. An empty path is the target itself. */
  send(path: readonly string[], args: readonly unknown[] | null): Promise<unknown>;
  dispose?(): void;
  /** Set for an object that every node can find. */
  readonly address?: ObjectAddress;
}

/** A call target with the number of stubs that refer to it. */
interface SharedTarget {
  readonly target: CallTarget;
  stubs: number;
}

const TARGETS = new WeakMap<object, SharedTarget>();
const DISPOSED = "RPC stub used after being disposed.";
const PROPERTIES = new WeakSet<object>();
const PROMISES = new WeakSet<object>();
const SERVICES = new WeakSet<object>();

/** Makes a call target of a local function or object; `cloudflare:workers` offers the constructor to programs. */
export class RpcStub {
  constructor(value: unknown) {
    return createStub(localTarget(value));
  }

  static [Symbol.hasInstance](value: unknown): boolean {
    return isReference(value) && TARGETS.has(value);
  }
}

/** What `instanceof` recognizes: the property of a stub. */
export const RpcProperty = createKind(PROPERTIES);

/** The result of a call that has not resolved; a property of a stub can be awaited, too. */
export const RpcPromise = createKind(PROMISES);

/** The stub of an object or an entrypoint. */
export const ServiceStub = createKind(SERVICES);

/** A class that programs cannot construct, whose instances are the members of a set. */
function createKind(members: WeakSet<object>): new () => object {
  const kind = function illegal(): never {
    throw new TypeError("Illegal constructor");
  };
  Object.defineProperty(kind, Symbol.hasInstance, {
    value: (value: unknown) => isReference(value) && members.has(value),
  });
  return kind as unknown as new () => object;
}

export interface StubOptions {
  /** An object or an entrypoint, which has `fetch`. */
  readonly isService?: boolean;
  /** Members that the stub itself has. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** A stub of a function; others are objects. Default true: `typeof` gives "function". */
  readonly isCallable?: boolean;
  /** What `Object.prototype.toString` shows. */
  readonly tag?: string;
  /** What a call of the stub itself does; default: it is sent. */
  readonly call?: (...args: unknown[]) => unknown;
}

export function createStub(target: CallTarget, options: StubOptions = {}): object {
  return shareStub({ target, stubs: 0 }, options);
}

/** A stub of its own for the other side of a call; the value itself if it is a stub that need not be disposed. */
export function duplicateForCall(stub: object): object {
  return SERVICES.has(stub) || TARGETS.get(stub)?.target.address !== undefined
    ? stub
    : (stub as { dup(): object }).dup();
}

/** The target of a stub; undefined for other values. */
export function targetOf(value: object): CallTarget | undefined {
  return TARGETS.get(value)?.target;
}

function shareStub(shared: SharedTarget, options: StubOptions): object {
  const members = options.members ?? {};
  shared.stubs += 1;
  let isDisposed = false;
  const dispose = () => {
    if (isDisposed) return;
    isDisposed = true;
    shared.stubs -= 1;
    if (shared.stubs === 0) shared.target.dispose?.();
  };
  const send: CallTarget["send"] = (path, args) =>
    isDisposed ? Promise.reject(new Error(DISPOSED)) : shared.target.send(path, args);
  const stub = new Proxy(options.isCallable === false ? {} : callableStub(), {
    get(_stub, name) {
      if (name === Symbol.dispose) return dispose;
      if (name === Symbol.toStringTag) return options.tag;
      if (typeof name !== "string" || name === "then" || name === "toJSON") return undefined;
      if (name === "dup")
        return () => {
          if (isDisposed) throw new Error(DISPOSED);
          return shareStub(shared, options);
        };
      if (name === "onRpcBroken") return () => undefined;
      if (Object.hasOwn(members, name)) return members[name];
      if (name in Object.prototype) return Reflect.get(Object.prototype, name) as unknown;
      return createProperty(send, [name]);
    },
    has: (_stub, name) => typeof name === "string" && name !== "then",
    set: () => false,
    ownKeys: () => Object.keys(members).filter((name) => members[name] !== undefined),
    getOwnPropertyDescriptor: (_stub, name) =>
      typeof name === "string" && Object.hasOwn(members, name)
        ? { value: members[name], enumerable: typeof members[name] !== "function", configurable: true }
        : undefined,
    apply: (_stub, _this, args: unknown[]) => options.call?.(...args) ?? createPromise(send([], args)),
  });
  TARGETS.set(stub, shared);
  if (options.isService === true) SERVICES.add(stub);
  return stub;
}

/** A property of a stub: callable, awaitable, and with properties of its own. */
function createProperty(send: CallTarget["send"], path: readonly string[]): object {
  let value: Promise<unknown> | undefined;
  const read = () => (value ??= send(path, null));
  const property = new Proxy(callableStub(), {
    get(_property, name) {
      if (typeof name !== "string") return undefined;
      if (isPromiseMember(name)) return bound(read(), name);
      return createProperty(send, [...path, name]);
    },
    apply: (_property, _this, args: unknown[]) => createPromise(send(path, args)),
  });
  PROPERTIES.add(property);
  return property;
}

/** The result of a call: a promise whose properties can be called before it has resolved. */
function createPromise(result: Promise<unknown>): object {
  const send: CallTarget["send"] = async (path, args) => follow(await result, path, args);
  const promise = new Proxy(callableStub(), {
    get(_promise, name) {
      if (name === Symbol.toStringTag) return "Promise";
      if (name === Symbol.dispose) return () => void result.then(disposeResult, () => undefined);
      if (typeof name !== "string") return undefined;
      if (isPromiseMember(name)) return bound(result, name);
      return createProperty(send, [name]);
    },
    getPrototypeOf: () => Promise.prototype,
    apply: (_promise, _this, args: unknown[]) => createPromise(send([], args)),
  });
  PROMISES.add(promise);
  return promise;
}

/** Calls or reads what the path names in a value of this side. */
async function follow(
  start: unknown,
  path: readonly string[],
  args: readonly unknown[] | null,
): Promise<unknown> {
  let holder: unknown;
  let value = start;
  for (const [i, name] of path.entries()) {
    const target = isReference(value) ? targetOf(value) : undefined;
    if (target !== undefined) return target.send(path.slice(i), args);
    holder = value;
    value = await (value as Record<string, unknown>)[name];
  }
  if (isReference(value) && args !== null) {
    const target = targetOf(value);
    if (target !== undefined) return target.send([], args);
  }
  return args === null ? value : Reflect.apply(value as (...args: unknown[]) => unknown, holder, [...args]);
}

/** The target for a value of this side, for `new RpcStub(value)`. */
function localTarget(value: unknown): CallTarget {
  return {
    send: (path, args) => follow(value, path, args),
    // Not within the code that disposes the last stub.
    dispose: () => queueMicrotask(() => disposeResult(value)),
  };
}

function isReference(value: unknown): value is object {
  return typeof value === "function" || (typeof value === "object" && value !== null);
}

function disposeResult(value: unknown): void {
  (value as { [Symbol.dispose]?: () => void } | null | undefined)?.[Symbol.dispose]?.();
}

function isPromiseMember(name: string): name is "then" | "catch" | "finally" {
  return name === "then" || name === "catch" || name === "finally";
}

function bound(promise: Promise<unknown>, name: "then" | "catch" | "finally"): unknown {
  return promise[name].bind(promise);
}

/** The target of a proxy that can be called. An arrow function: it has no `prototype`, which a proxy would have to report. */
function callableStub(): () => void {
  return () => undefined;
}
