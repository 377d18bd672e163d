/**
 * The objects of a worker: classes by the name of their export, a namespace for each. The agents' area creates the host; the worker area
 * registers the classes and hands out the namespaces as bindings.
 *
 *   host.register("Counter", module.Counter);            // every object class of the program; again after a reload
 *   env.COUNTER = host.namespace("Counter");             // also env.Counter; exports.Counter = host.exported("Counter")
 *   bindWorker({ env, exports, waitUntil });             // before the first object is constructed
 *   const response = await module.default.fetch(request, env, ctx);
 *   response.webSocket                                   // not null for a response with status 101: join it to the client's socket with
 *                                                        // `joinClient(hub, response.webSocket, …)` (client-socket.ts)
 *
 * `installWorkerGlobals()` (worker-globals.ts) adds `WebSocketPair` and the `Response` that accepts status 101 to `globalThis`; the worker area
 * calls it once, before it loads the worker's module. `AgentsArea.objects` is the host of the service.
 */
import { SignalboxError } from "@signalbox/protocol";
import { InstanceElsewhereError } from "../../engines/instance-store/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceClasses } from "../instance/instance-classes.ts";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import type { ResidentDefinition, ResidentParts } from "../instance/resident.ts";
import type { Clock } from "../../core/clock.ts";
import { LiveObject, type LiveObjectHost, type ObjectSpec } from "./live-object.ts";
import { exportKind } from "./class-marks.ts";
import { FacetInstances, isFacetName } from "./facet-instances.ts";
import { createId, ObjectIds } from "./object-id.ts";
import { readName } from "./object-name.ts";
import { agentNameOf, createExport, exportedClassOf, Namespace, workerOf } from "./object-namespace.ts";
import type { ObjectPasts } from "./object-past.ts";
import { OBJECT_SCHEMA } from "./object-schema.ts";
import { type AdoptedSocket, ObjectSockets } from "./object-sockets.ts";
import type { ObjectAddress, ObjectCalls, ObjectReach } from "./object-calls.ts";
import { createObjectStub, localCalls } from "./object-stub.ts";
import type { ObjectClass, ObjectId, ObjectNamespace, ObjectStub } from "./object-types.ts";
import type { FrameOutcome, FrameReceiver, SocketEnd, SocketFrame } from "./web-socket.ts";
import { workerBinding } from "./worker-binding.ts";

export interface ObjectHostParts {
  readonly directory: Directory;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The account that owns the objects. */
  readonly account: string;
  /** Gets the definitions of the registered classes. No object class can have the name of an agent in it. */
  readonly classes: Pick<InstanceClasses, "agents" | "addObjects">;
  /** The way to objects of all nodes; known when the first object is used. */
  readonly reach: () => ObjectReach;
  /** Names of the agents that are part of the service. A program that does not know the service may have a class of such a name. */
  readonly builtInNames: ReadonlySet<string>;
  readonly pasts: ObjectPasts;
}

interface Registered {
  readonly exportName: string;
  readonly definition: ResidentDefinition<LiveObject>;
  readonly ids: ObjectIds;
  readonly namespace: Namespace;
  /** Null until the class is registered. */
  objectClass: ObjectClass | null;
}

const HANDLED = (): FrameOutcome => "handled";

export class ObjectHost {
  readonly sockets = new ObjectSockets();
  readonly #parts: ObjectHostParts;
  readonly #byExport = new Map<string, Registered>();
  /**
   * Classes by their name in the catalog. Exports such as `Sub` and `SUB` have the same name there: their objects are told apart by their ids, which prove the
   * export they belong to.
   */
  readonly #byAgent = new Map<string, Registered[]>();
  /** By the name of the class in the catalog. */
  readonly #updateDelays = new Map<string, number | undefined>();
  /** The names under which objects of renamed classes are stored. */
  readonly #firstNames = new Map<string, string>();
  /** Names that callers used for objects that are about to be constructed, by the key of the instance. */
  readonly #names = new Map<string, string>();

  constructor(parts: ObjectHostParts) {
    this.#parts = parts;
  }

  /**
   * Makes a class available. Objects in memory keep the class they were constructed from until they leave memory. A class that does not extend
   * `DurableObject` has handlers only. `updateDelayMs`: see `ResidentDefinition`.
   */
  register(exportName: string, objectClass: ObjectClass, updateDelayMs?: number): void {
    const registered = this.#find(exportName);
    this.#updateDelays.set(registered.definition.kebab, updateDelayMs);
    const isNew = registered.objectClass === null;
    registered.objectClass = objectClass;
    if (!isNew) return;
    this.#parts.classes.addObjects(registered.definition);
    this.#parts.directory.definitionAdded();
  }

  /** The objects of the class are those of another name, which the class had when they were created. Before the class is used. */
  rename(exportName: string, firstName: string): void {
    this.#firstNames.set(exportName, firstName);
  }

  /** How long objects may keep their code at most, when this node is replaced. */
  get maxUpdateDelayMs(): number {
    return Math.max(0, ...[...this.#updateDelays.values()].map((delay) => delay ?? 0));
  }

  /** The account that owns the objects. */
  get account(): string {
    return this.#parts.account;
  }

  /** True for a registered class of the first worker. Workflows and the service's own objects have names with a colon. */
  has(exportName: string): boolean {
    const isOwn = workerOf(exportName) === "" && !exportName.includes(":");
    return isOwn && this.#byExport.get(exportName)?.objectClass != null;
  }

  /** The namespace of a class, which need not be registered yet: its objects can be called when the class is. */
  namespace(exportName: string): ObjectNamespace {
    return this.#find(exportName).namespace;
  }

  /** The namespace as `ctx.exports` has it. */
  exported(exportName: string): ObjectNamespace {
    return createExport(exportName, this.namespace(exportName));
  }

  /** Ends every object of the worker, so that the next events construct them from the classes registered last. Their sockets stay open. */
  async reset(): Promise<void> {
    const reason = new SignalboxError("stopping", { message: "The worker is reloading" });
    await Promise.all([...this.#byAgent.keys()].map((agent) => this.#parts.directory.endAll(agent, reason)));
  }

  /** The registered classes, for the management interface. Those of the service itself (`signalbox:…`) are not the operator's. */
  classes(): { agent: string; exportName: string }[] {
    return [...this.#byExport]
      .filter(([name, { objectClass }]) => objectClass !== null && !name.startsWith("signalbox:"))
      .map(([exportName, { definition }]) => ({ agent: definition.kebab, exportName }));
  }

  /** True for the name of a built-in agent that a class of the program has in URLs instead. */
  replaces(agentName: string): boolean {
    return (
      this.#parts.builtInNames.has(agentName) &&
      this.#byAgent.get(`${agentName}:object`)?.some(({ objectClass }) => objectClass !== null) === true
    );
  }

  /** The object that has this name in the program, whether or not it exists. */
  named(agent: string, name: string): InstanceRef | null {
    const registered = this.#byAgent.get(agent)?.[0];
    if (registered === undefined) return null;
    return { account: this.#parts.account, agent, name: String(registered.ids.fromName(name)) };
  }

  nameOf(ref: InstanceRef): Promise<string | null> {
    return readName(this.#parts.directory, ref);
  }

  connectionCount(ref: InstanceRef): number {
    return this.sockets.find(keyOf(ref))?.list().length ?? 0;
  }

  /** Removes the object, its facets, and everything they stored; its connections are cut. */
  async destroy(ref: InstanceRef): Promise<void> {
    this.sockets.find(keyOf(ref))?.terminate();
    await this.#facetsOf(ref.agent).remove(ref.name);
  }

  /** When all objects have left memory, and before the store is closed. */
  settlePasts(): Promise<void> {
    return this.#parts.pasts.settle();
  }

  /** Before an instance is removed. Agents of this package have no past. */
  async removePast(ref: InstanceRef): Promise<void> {
    if (this.#byAgent.has(ref.agent)) await this.#parts.pasts.remove(ref);
  }

  #find(exportName: string): Registered {
    let registered = this.#byExport.get(exportName);
    if (registered === undefined) {
      registered = this.#create(exportName);
      this.#byExport.set(exportName, registered);
    }
    return registered;
  }

  #create(exportName: string): Registered {
    const firstName = this.#firstNames.get(exportName) ?? exportName;
    const plain = agentNameOf(firstName);
    // The instances of a built-in agent are in the catalog, too: another name keeps the two apart.
    const agent = this.#parts.builtInNames.has(plain) ? `${plain}:object` : plain;
    if (this.#parts.classes.agents.has(agent))
      throw new Error(`the object class ${exportName} and another class both have the name "${agent}"`);
    const ids = new ObjectIds(`${this.#parts.account}/${firstName}`);
    const others = this.#byAgent.get(agent) ?? [];
    const registered: Registered = {
      exportName,
      ids,
      objectClass: null,
      namespace: new Namespace(exportName, ids, (id) => this.#stub(exportName, registered, id)),
      definition: others[0]?.definition ?? this.#define(agent, (ref) => this.#specOf(agent, ref)),
    };
    this.#byAgent.set(agent, [...others, registered]);
    return registered;
  }

  #define(
    agent: string,
    spec: (ref: InstanceRef) => ObjectSpec | Promise<ObjectSpec>,
  ): ResidentDefinition<LiveObject> {
    const delays = this.#updateDelays;
    return {
      get updateDelayMs() {
        return delays.get(agent);
      },
      kebab: agent,
      initialSchema: OBJECT_SCHEMA,
      isInterleaving: true,
      isRecorded: true,
      keepsFailedWrites: true,
      turnTimeoutMs: 0,
      prepare: (database, ref) => this.#parts.pasts.restore(database, ref),
      create: (parts: ResidentParts<LiveObject>) =>
        new LiveObject(parts, this.#hostOf(agent), () => spec(parts.ref)),
    };
  }

  /** The class of an object, by its id. */
  #ownerOf(agent: string, { name }: InstanceRef): Registered | undefined {
    const all = this.#byAgent.get(agent) ?? [];
    return all.length > 1 ? all.find(({ ids }) => ids.owns(name)) : all[0];
  }

  #specOf(agent: string, ref: InstanceRef): ObjectSpec {
    const owner = this.#ownerOf(agent, ref);
    const objectClass = owner?.objectClass ?? null;
    if (objectClass === null)
      throw new SignalboxError("agent_not_found", {
        message: `The worker exports no object class ${owner?.exportName ?? agent}`,
      });
    const key = keyOf(ref);
    const name = this.#names.get(key);
    this.#names.delete(key);
    return {
      objectClass,
      id: (stored) => createId(ref.name, stored),
      name,
      props: undefined,
      binding: workerBinding(workerOf(owner?.exportName ?? "")),
      isFacet: false,
    };
  }

  #stub(exportName: string, registered: Registered, id: ObjectId): ObjectStub {
    const address = { exportName, id: String(id), name: id.name };
    const here = this.#callsHere(registered, address);
    const calls = this.#parts.reach().callsOf(registered.definition.kebab, address, here);
    return createObjectStub(id, address, calls);
  }

  #callsHere({ definition }: Registered, { id, name }: ObjectAddress): ObjectCalls {
    const { account, directory } = this.#parts;
    const key = keyOf({ account, agent: definition.kebab, name: id });
    return localCalls((kind, label, body) => {
      if (name !== undefined && !directory.has(key)) this.#names.set(key, name);
      return directory.get(definition, account, id, key).run({ kind, label, body });
    });
  }

  /** The calls of an object of this node, for callers on other nodes. */
  callsHere(address: ObjectAddress): ObjectCalls {
    return this.#callsHere(this.#find(address.exportName), address);
  }

  /** A stub of an object that another node has named. */
  stubOf({ exportName, id, name }: ObjectAddress): ObjectStub {
    return this.#stub(exportName, this.#find(exportName), createId(id, name));
  }

  /** What the objects of one class use of the host; facets have the name of their parent's class in the catalog. */
  #hostOf(agent: string): LiveObjectHost {
    const facets = this.#facetsOf(agent);
    const { pasts } = this.#parts;
    return { facets, pasts, sockets: this.sockets, receive: (...frame) => this.#receive(...frame) };
  }

  #facetsOf(agent: string): FacetInstances {
    const { account, directory } = this.#parts;
    return new FacetInstances({
      directory,
      account,
      agent,
      define: (spec) => this.#define(agent, spec),
      claim: (ref) => this.#parts.reach().claimFacet(ref),
      classOf: (value) => this.#classOf(value),
      worker: workerOf(this.#byAgent.get(agent)?.[0]?.exportName ?? ""),
    });
  }

  readonly isFacet = (ref: InstanceRef): boolean => isFacetName(ref.name);

  /** A WebSocket that the object accepted on another node belongs to it here from now on; the receiver takes its frames. */
  adoptSocket(ref: InstanceRef, end: SocketEnd, socket: AdoptedSocket): FrameReceiver {
    this.sockets.adopt(keyOf(ref), end, socket);
    return (frame) => this.#receive(ref, end, frame);
  }

  /** Delivers a frame to the object, which is loaded if it is not in memory. */
  #receive(ref: InstanceRef, end: SocketEnd, frame: SocketFrame): Promise<FrameOutcome> | undefined {
    const { clock, logger } = this.#parts;
    const key = keyOf(ref);
    const set = this.sockets.find(key);
    // Connections that were cut with the object have no events.
    if (set === undefined || !set.ends.has(end)) return undefined;
    if (frame.kind === "message" && set.answer(end, frame.data, clock.now())) return undefined;
    let isHandled = false;
    const handled = this.#runOn(ref, `websocket ${frame.kind}`, async (live) => {
      isHandled = true;
      try {
        await live.receive(end, frame);
      } finally {
        if (frame.kind === "close") this.sockets.remove(key, end);
      }
    });
    return handled.then(HANDLED, (error: unknown) => {
      if (error instanceof InstanceElsewhereError) {
        if (this.sockets.find(key)?.ends.has(end) === true) this.#parts.reach().followTo(ref, error.node);
        end.onReturn?.(frame);
        return "not run";
      }
      // A failure of the handler has been reported. Otherwise the object could not take the frame, and the client should connect again.
      if (frame.kind === "close") this.sockets.remove(key, end);
      if (isHandled || frame.kind === "close") return "handled";
      logger.warn(
        { err: error, agent: ref.agent, instance: ref.name },
        "a WebSocket message could not be delivered",
      );
      void end.transmit({
        kind: "close",
        code: 1013,
        reason: "the object could not take a message",
        wasClean: true,
      });
      return "handled";
    });
  }

  async #runOn(ref: InstanceRef, label: string, body: (live: LiveObject) => Promise<void>): Promise<void> {
    const { account, directory } = this.#parts;
    const registered = this.#ownerOf(ref.agent, { ...ref, name: ref.name.split(".")[0] ?? "" });
    if (registered === undefined) throw new SignalboxError("agent_not_found");
    if (isFacetName(ref.name) && directory.find(ref) === undefined)
      throw new SignalboxError("agent_not_found", { message: "The facet is not in memory" });
    await directory.get(registered.definition, account, ref.name).run({ kind: "message", label, body });
  }

  #classOf(value: unknown): { objectClass: ObjectClass; props?: unknown } {
    const exported = exportedClassOf(value);
    const found = exported === undefined ? value : this.#byExport.get(exported.exportName)?.objectClass;
    if (found === null || found === undefined || (exported === undefined && exportKind(found) !== "object"))
      throw new TypeError(
        "a facet is started with a class that extends DurableObject, or its entry in ctx.exports",
      );
    return { objectClass: found as ObjectClass, props: exported?.props };
  }
}
