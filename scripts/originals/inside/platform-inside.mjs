/** `cloudflare:test` for test files that run inside of a worker program on Signalbox: what tests do with objects is done by methods that `open` adds to their classes. */
import { env, exports } from "cloudflare:workers";
import { NotPortable, refuse } from "./vitest-inside.mjs";

export { env };
export const SELF = { fetch: (...args) => exports.default.fetch(...args) };

const visits = new Map();
let lastVisit = 0;

/** Adds the methods to a class that tests look into. */
export function open(Class) {
  const methods = {
    /** False on another node than that of the test. */
    async __visit(number) {
      const visit = visits.get(number);
      if (visit === undefined) return false;
      visits.delete(number);
      await visit(this, this.ctx ?? this.state);
      return true;
    },
    async __ring() {
      const { storage } = this.ctx;
      const scheduledTime = await storage.getAlarm();
      if (scheduledTime === null) return false;
      await storage.deleteAlarm();
      await this.alarm({ scheduledTime, retryCount: 0, isRetry: false });
      return true;
    },
    __leave() {
      this.ctx.abort("a test evicts the object");
    },
  };
  for (const [name, value] of Object.entries(methods))
    Object.defineProperty(Class.prototype, name, { value, configurable: true });
  return Class;
}

/** Runs the function inside of the object; its result need not be a copy. */
export async function runInDurableObject(stub, work) {
  lastVisit += 1;
  const number = lastVisit;
  const { promise, resolve, reject } = Promise.withResolvers();
  // Read below, after the call.
  promise.catch(() => undefined);
  visits.set(number, async (object, ctx) => {
    try {
      resolve(await work(object, ctx));
    } catch (error) {
      reject(error);
    }
  });
  if (!(await stub.__visit(number))) throw new NotPortable("a look into an object of another node");
  return promise;
}

export const runDurableObjectAlarm = (stub) => stub.__ring();

/** Nothing in memory survives; unlike on the original, connections do not either. */
export async function evictDurableObject(stub) {
  try {
    await stub.__leave();
  } catch {
    // The call fails with the object.
  }
}

const contexts = new WeakMap();

export function createExecutionContext() {
  const work = [];
  const ctx = {
    waitUntil: (promise) => void work.push(promise),
    passThroughOnException: () => undefined,
    props: {},
    exports,
  };
  contexts.set(ctx, work);
  return ctx;
}

export async function waitOnExecutionContext(ctx) {
  for (const promise of contexts.get(ctx)) await Promise.allSettled([promise]);
}

export const createScheduledController = (options) => ({
  scheduledTime: Date.now(),
  cron: "",
  noRetry: () => undefined,
  ...options,
});
export const evictAllDurableObjects = refuse("the eviction of all objects");
export const abortAllDurableObjects = evictAllDurableObjects;
export const listDurableObjectIds = refuse("the list of all objects");
export const reset = refuse("a storage that is emptied by the test");
export const createMessageBatch = refuse("a queue");
export const getQueueResult = createMessageBatch;
export const introspectWorkflow = refuse("workflows whose steps the test replaces");
export const fetchMock = new Proxy({}, { get: () => refuse("a network that the test replaces") });

/** Only the end of a workflow can be looked at. */
export async function introspectWorkflowInstance(binding, id) {
  const status = async () => (await binding.get(id)).status();
  return {
    modify: async () => refuse("workflows whose steps the test replaces")(),
    async waitForStatus(wanted) {
      for (;;) {
        const { status: found } = await status().catch(() => ({ status: "unknown" }));
        if (found === wanted) return;
        if (found === "complete" || found === "errored" || found === "terminated")
          throw new Error(`the workflow is ${found}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    waitForStepResult: async () => {
      throw new NotPortable("results of single steps");
    },
    getOutput: async () => (await status()).output,
    getError: async () => (await status()).error,
    dispose: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}
