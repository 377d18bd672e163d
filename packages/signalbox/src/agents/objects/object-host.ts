/**
 * The objects of a worker: classes by the name of their export, a namespace for each. The agents' area creates the host; the worker area
 * registers the classes and hands out the namespaces as bindings.
 *
 *   host.register("Counter", module.Counter);            // every export whose `exportKind` is "object"; again after a reload
 *   env.COUNTER = host.namespace("Counter");             // also env.Counter and exports.Counter
 *   bindWorker({ env, exports, waitUntil });             // before the first object is constructed
 *   const response = await module.default.fetch(request, env, ctx);
 *   response.webSocket                                   // not null for a response with status 101: connect it to the client's socket
 *                                                        // with `joinClient` (web-socket.ts)
 *
 * `installWorkerGlobals()` (worker-globals.ts) adds `WebSocketPair` and the `Response` that accepts status 101 to `globalThis`; the worker area
 * calls it once, before it loads the worker's module. `AgentsArea.objects` is the host of the service.
 */
import type { ObjectClass, ObjectNamespace } from "./object-types.ts";

export interface ObjectHost {
  /** Makes a class available. Objects in memory keep the class they were constructed from until they leave memory. */
  register(exportName: string, objectClass: ObjectClass): void;
  /** The namespace of a class, which need not be registered yet: its objects can be called when the class is. */
  namespace(exportName: string): ObjectNamespace;
  /** Ends every object of the worker, so that the next events construct them from the classes registered last. Their sockets stay open. */
  reset(): Promise<void>;
}
