/**
 * The module `cloudflare:workers`. The loader of the worker mode serves this file under that name.
 *
 * Each further worker of a server has its own copy: the loader adds the worker's name to the URL.
 *
 * Classes carry marks under registered symbols, so that the host recognizes them whichever copy of this file they came from.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { currentWork } from "./current-work.ts";
import { ENTRYPOINT, OBJECT, RPC_TARGET, WORKFLOW } from "./class-marks.ts";
import { WORKER_PARAMETER, workerBinding } from "./worker-binding.ts";

export { RpcPromise, RpcProperty, RpcStub, ServiceStub } from "./rpc-stub.ts";
export { tracing } from "./tracing.ts";

/** The name of the worker; empty for the first one. */
const WORKER = new URL(import.meta.url).searchParams.get(WORKER_PARAMETER) ?? "";

/** The base class of objects. */
export class DurableObject<Env = unknown, Props = unknown> {
  static {
    Object.defineProperty(this.prototype, OBJECT, { value: true });
  }

  readonly ctx: unknown;
  readonly env: Env;
  declare readonly props: Props;

  constructor(ctx: unknown, env: Env) {
    this.ctx = ctx;
    this.env = env;
  }
}

/** The base class of values that are passed by reference in calls between objects. */
export class RpcTarget {
  static {
    Object.defineProperty(this.prototype, RPC_TARGET, { value: true });
  }
}

/** The base class of named entry points of a worker. */
export class WorkerEntrypoint<Env = unknown, Props = unknown> {
  static {
    Object.defineProperty(this.prototype, ENTRYPOINT, { value: true });
  }

  readonly ctx: unknown;
  readonly env: Env;
  declare readonly props: Props;

  constructor(ctx: unknown, env: Env) {
    this.ctx = ctx;
    this.env = env;
  }
}

/** The base class of workflows. */
export class WorkflowEntrypoint<Env = unknown> {
  static {
    Object.defineProperty(this.prototype, WORKFLOW, { value: true });
  }

  readonly ctx: unknown;
  readonly env: Env;

  constructor(ctx: unknown, env: Env) {
    this.ctx = ctx;
    this.env = env;
  }
}

type Members = Readonly<Record<string, unknown>>;

/** What `withEnv` and `withExports` have set for the running function. */
const overrides = new AsyncLocalStorage<{ readonly env?: Members; readonly exports?: Members }>();

/** The bindings; read at each access, so that modules may import them before the worker has started. */
export const env = view(() => overrides.getStore()?.env ?? workerBinding(WORKER).env);

/** The exports of the worker, as `ctx.exports` has them. */
export const exports = view(() => overrides.getStore()?.exports ?? workerBinding(WORKER).exports);

/** Runs the function with other bindings in `env`, also after its awaits. */
export function withEnv<T>(newEnv: Members, work: () => T): T {
  return overrides.run({ ...overrides.getStore(), env: newEnv }, work);
}

export function withExports<T>(newExports: Members, work: () => T): T {
  return overrides.run({ ...overrides.getStore(), exports: newExports }, work);
}

export function withEnvAndExports<T>(newEnv: Members, newExports: Members, work: () => T): T {
  return overrides.run({ env: newEnv, exports: newExports }, work);
}

/** This server caches no responses, so there is never anything left to remove. */
export const cache = {
  purge: async () => ({ success: true, errors: [] }),
  invalidate: async () => ({ success: true, errors: [] }),
};

/** The name of the method that makes stored stubs again. Stubs cannot be stored here: a class may define it, and it is not called. */
export const restore = Symbol.for("signalbox.restore");

export function abortIsolate(): never {
  throw new Error(
    "abortIsolate() is not available on Signalbox: the program runs in the process of the server",
  );
}

/** Keeps the object of the running event in memory, or the process alive, until the promise has settled. */
export function waitUntil(work: Promise<unknown>): void {
  const keeper = currentWork();
  if (keeper === undefined) workerBinding(WORKER).waitUntil(work);
  else keeper.waitUntil(work);
}

/** A read-only object whose properties are those of `source()` at the time of each access. */
function view(source: () => Members): Members {
  return new Proxy(Object.create(null) as Record<string, unknown>, {
    get: (_view, name) => (typeof name === "string" ? source()[name] : undefined),
    has: (_view, name) => typeof name === "string" && name in source(),
    ownKeys: () => Reflect.ownKeys(source()),
    getOwnPropertyDescriptor: (_view, name) => {
      const descriptor = Object.getOwnPropertyDescriptor(source(), name);
      // A proxy may report only configurable properties that its target lacks.
      return descriptor === undefined ? undefined : { ...descriptor, configurable: true };
    },
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  });
}
