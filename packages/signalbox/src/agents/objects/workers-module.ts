/**
 * The module `cloudflare:workers`. The loader of the worker mode serves this file under that name.
 *
 * Classes carry marks under registered symbols, so that the host recognizes them whichever copy of this file they came from.
 */
import { currentWork } from "./current-work.ts";
import { ENTRYPOINT, OBJECT, RPC_TARGET, WORKFLOW } from "./marks.ts";
import { workerBinding } from "./worker-binding.ts";

export { RpcStub } from "./rpc-stub.ts";

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

/** The bindings; read at each access, so that modules may import them before the worker has started. */
export const env = view(() => workerBinding().env);

/** The exports of the worker, as `ctx.exports` has them. */
export const exports = view(() => workerBinding().exports);

/** Keeps the object of the running event in memory, or the process alive, until the promise has settled. */
export function waitUntil(work: Promise<unknown>): void {
  const keeper = currentWork();
  if (keeper === undefined) workerBinding().waitUntil(work);
  else keeper.waitUntil(work);
}

/** A read-only object whose properties are those of `source()` at the time of each access. */
function view(source: () => Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
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
