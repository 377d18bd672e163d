/**
 * `addEventListener` of the global scope, with the events that a program on this server has there: `unhandledrejection`, `rejectionhandled` and `error`.
 * The server logs these errors whether or not a program listens.
 */

class RejectionEvent extends Event {
  readonly promise: Promise<unknown>;
  readonly reason: unknown;

  constructor(type: string, promise: Promise<unknown>, reason: unknown) {
    super(type, { cancelable: true });
    this.promise = promise;
    this.reason = reason;
  }
}

class FailureEvent extends Event {
  readonly error: unknown;
  readonly message: string;

  constructor(error: unknown) {
    super("error", { cancelable: true });
    this.error = error;
    this.message = error instanceof Error ? error.message : String(error);
  }
}

/** Idempotent. */
export function addGlobalEvents(): void {
  if ("addEventListener" in globalThis) return;
  const target = new EventTarget();
  const bound = (name: "addEventListener" | "removeEventListener" | "dispatchEvent") =>
    target[name].bind(target) as unknown;
  for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"] as const)
    define(name, bound(name));
  define("PromiseRejectionEvent", RejectionEvent);
  /** Rejections that `reportError` has made. */
  const reported = new WeakSet<Promise<unknown>>();
  process.on("unhandledRejection", (reason, promise) => {
    if (reported.has(promise)) return;
    target.dispatchEvent(new RejectionEvent("unhandledrejection", promise, reason));
  });
  process.on("rejectionHandled", (promise) => {
    target.dispatchEvent(new RejectionEvent("rejectionhandled", promise, undefined));
  });
  define("reportError", (error: unknown) => {
    // What no listener has handled is logged like any other rejection. As an exception it could count as one of the server, whose code may be on its stack.
    if (target.dispatchEvent(new FailureEvent(error))) reported.add(rejectedWith(error));
  });
}

async function rejectedWith(error: unknown): Promise<never> {
  throw error;
}

function define(name: string, value: unknown): void {
  if (!(name in globalThis))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}
