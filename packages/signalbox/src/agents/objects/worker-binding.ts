/**
 * What a program of the worker mode sees everywhere: its bindings, its exports, and how it keeps work alive. `cloudflare:workers` reads it. The first worker of a server
 * has an empty name.
 *
 * The binding is a property of `globalThis` under a registered symbol: users' modules may come from another loader, which has its own copy of
 * this file.
 */

export interface WorkerBinding {
  /** `env`: variables, secrets, namespaces, services. */
  readonly env: Readonly<Record<string, unknown>>;
  /** `ctx.exports`: a namespace for each exported object class, a stub for each entry point. */
  readonly exports: Readonly<Record<string, unknown>>;
  /** Compatibility flags of the program; default: all that this server knows are on. */
  readonly flags?: Readonly<Record<string, boolean>>;
  /** Keeps the process from stopping until the promise has settled, for code that runs outside of objects. */
  waitUntil(work: Promise<unknown>): void;
}

/** In URLs of modules: the name of the worker that they belong to. */
export const WORKER_PARAMETER = "signalbox-worker";

const KEY = Symbol.for("signalbox.worker-bindings");
const holder = globalThis as { [KEY]?: Map<string, WorkerBinding> };

/** Makes the binding visible to the program; a reload replaces it. */
export function bindWorker(binding: WorkerBinding, worker = ""): void {
  holder[KEY] ??= new Map();
  holder[KEY].set(worker, binding);
}

/** Of the first worker: globals and values that pass between workers have one form. Undefined while no program is bound. */
export function currentFlags(): Readonly<Record<string, boolean>> | undefined {
  return holder[KEY]?.get("")?.flags;
}

export function workerBinding(worker = ""): WorkerBinding {
  const binding = holder[KEY]?.get(worker);
  if (binding === undefined)
    throw new Error(
      "`env` and `exports` of cloudflare:workers are not available before the worker has started",
    );
  return binding;
}
