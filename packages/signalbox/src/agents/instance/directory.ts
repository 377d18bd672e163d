/**
 * Finds the instance of `(account, agent, name)` in memory or loads it, and hibernates idle instances.
 *
 * Invariants:
 * 1. At most one instance per key takes events; a successor opens the database only after the predecessor has closed it.
 * 2. The number of open databases is bounded: beyond the limit the instance that was used least recently hibernates first. If none is idle, new
 *    instances are refused with `overloaded`.
 * 3. In a cluster, an instance that another node has taken leaves memory at once (`Instance.fence`); `handOver` gives one to another node.
 * 4. Due work of instances that are not in memory is found only through the catalog's `next_due_at` (`Waker`).
 */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import { RecencyList } from "../../core/recency-list.ts";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import { databaseName, type InstanceRef, keyOf, refOf } from "./instance-ref.ts";
import { runOutsideTurns } from "../../engines/turn-runtime/index.ts";
import { AgentDefinition } from "./agent-definition.ts";
import { Arrivals } from "./arrivals.ts";
import { FileHolds } from "./file-holds.ts";
import { type InstanceReader, readStored, unlessDiskFull } from "./inspection.ts";
import { type AnyInstance, Instance } from "./instance.ts";
import type { InstanceEvents } from "./instance-events.ts";
import type { DueEntry } from "./instance-catalog.ts";
import type { HandOverHook } from "./hand-over-hook.ts";
import type { Leaving } from "./leaving.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import { LiveAgent } from "./live-agent.ts";
import type { Resident, ResidentDefinition } from "./resident.ts";
import { Waker } from "./waker.ts";

/** Bounds of the interval at which idle instances hibernate; within them it is half of the idle timeout. */
const MIN_SWEEP_MS = 50;
const MAX_SWEEP_MS = 5000;

export interface DirectoryLimits {
  readonly maxActiveInstances: number;
  readonly idleTimeoutMs: number;
}

/** The loaded classes by their names in the catalog. */
export interface Definitions {
  keys(): Iterable<string>;
  get(kebab: string): AnyDefinition | undefined;
}

type AnyDefinition = AgentDefinition | ResidentDefinition<Resident>;

export class Directory {
  readonly #environment: InstanceEnvironment;
  readonly #limits: DirectoryLimits;
  readonly #definitions: Definitions;
  readonly #onDestroy: (ref: InstanceRef) => Promise<void>;
  readonly #instances = new Map<string, AnyInstance>();
  readonly #byUse = new RecencyList<AnyInstance>();
  readonly #files: FileHolds;
  readonly #arrivals = new Arrivals();
  readonly #events: InstanceEvents<AnyInstance>;
  readonly #waker: Waker;
  /** What goes with an instance to another node; null for nothing. */
  handOverHook: HandOverHook | null = null;
  #sweepTimer: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(
    environment: InstanceEnvironment,
    limits: DirectoryLimits,
    definitions: Definitions,
    onDestroy: (ref: InstanceRef) => Promise<void>,
  ) {
    this.#environment = environment;
    this.#limits = limits;
    this.#definitions = definitions;
    this.#onDestroy = onDestroy;
    this.#files = new FileHolds(environment.logger);
    this.#waker = new Waker({
      ...environment,
      agents: () => definitions.keys(),
      // The other half is for events from outside.
      maxBusy: Math.max(1, Math.floor(limits.maxActiveInstances / 2)),
      isInMemory: (ref) => this.#instances.has(keyOf(ref)),
      wake: (ref) => this.#wake(ref),
    });
    this.#events = {
      onIdle: (instance) => {
        this.#shrink();
        this.#waker.onIdle(instance);
      },
      onLeave: (instance, left) => this.#onLeave(instance, left),
      onDestroyRequest: (instance) => this.#destroyLater(instance),
    };
    environment.ownership?.onFenced(({ name, reason }) => {
      const key = keyOf(refOf(name));
      this.#instances.get(key)?.fence(new InstanceFencedError(reason));
      environment.hub.onMoved?.(key);
    });
  }

  get size(): number {
    return this.#instances.size;
  }

  /** The instances in memory. */
  instances(): Iterable<AnyInstance> {
    return [...this.#instances.values()];
  }

  get waitingTurns(): number {
    let count = 0;
    for (const instance of this.#instances.values()) count += instance.waitingTurns;
    return count;
  }

  start(): void {
    const sweepMs = Math.max(MIN_SWEEP_MS, Math.min(this.#limits.idleTimeoutMs / 2, MAX_SWEEP_MS));
    this.#sweepTimer = setInterval(() => this.#sweep(), sweepMs).unref();
    this.#waker.start();
  }

  /** A class was loaded after the start: its instances may have due work. */
  definitionAdded(): void {
    if (this.#sweepTimer !== undefined && !this.#isStopping) this.#waker.start();
  }

  /** From now on no instance is loaded; those in memory continue. */
  drain(): void {
    this.#isStopping = true;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#sweepTimer);
    await this.#waker.stop();
    const reason = new SignalboxError("stopping", { headers: { "retry-after": "1" } });
    await Promise.all([...this.#instances.values()].map((instance) => instance.end(reason)));
    await this.#files.whenAllFree();
  }

  /**
   * The instance, loaded if it is not in memory. Throws `overloaded` when no more instances can be opened. A caller that keeps the key passes it:
   * joining and hashing a new text takes 2.5 % of a method call over a WebSocket.
   */
  get(definition: AgentDefinition, account: string, name: string, knownKey?: string): Instance;
  get<R extends Resident>(
    definition: ResidentDefinition<R>,
    account: string,
    name: string,
    knownKey?: string,
  ): Instance<R, ResidentDefinition<R>>;
  get(definition: AnyDefinition, account: string, name: string, knownKey?: string): AnyInstance {
    const ref = { account, agent: definition.kebab, name };
    const key = knownKey ?? keyOf(ref);
    const known = this.#instances.get(key);
    if (known !== undefined) {
      this.#byUse.use(known);
      return known;
    }
    if (this.#isStopping) throw new SignalboxError("stopping", { headers: { "retry-after": "1" } });
    // On a full disk the instance could not open its database, and its callers would wait with it.
    this.#environment.store.requireRoom();
    if (!this.#makeRoom()) {
      throw overloaded("Too many instances are busy", { "retry-after": "1" });
    }
    return this.#load(definition, ref, key, false);
  }

  /** True while an instance that has left memory, a reader or a removal uses the file. */
  isClosing(key: string): boolean {
    return this.#files.find(key) !== undefined;
  }

  /** True when the instance of this key is in memory. */
  has(key: string): boolean {
    return this.#instances.has(key);
  }

  /** Ends all instances of an agent that are in memory; the next events load them again. */
  async endAll(agent: string, reason: unknown): Promise<void> {
    const ended = [...this.#instances.values()].filter(({ ref }) => ref.agent === agent);
    await Promise.all(ended.map((instance) => instance.end(reason)));
  }

  /** Wakes an instance with due work that was left by another node. Resolves when there is room for it. */
  wakeOrphan(entry: DueEntry): Promise<void> {
    return this.#waker.wake(entry);
  }

  /** The instance if it is in memory. */
  find(ref: InstanceRef): AnyInstance | undefined {
    return this.#instances.get(keyOf(ref));
  }

  /** True for an instance that is in memory or in the catalog. */
  async exists(ref: InstanceRef): Promise<boolean> {
    return this.find(ref) !== undefined || (await this.#environment.catalog.find(ref)) !== undefined;
  }

  /** Calls back once, when the instance of this key next comes into memory. The returned function cancels that. */
  onArrival(key: string, callback: () => void): () => void {
    return this.#arrivals.once(key, callback);
  }

  /** Reads an instance that exists: in a turn if it is in memory, else from its file without running any of its code. */
  async read<T>(ref: InstanceRef, label: string, work: (reader: InstanceReader) => T): Promise<T> {
    const { store, clock } = this.#environment;
    const key = keyOf(ref);
    for (;;) {
      const instance = this.#instances.get(key);
      if (instance !== undefined)
        return unlessDiskFull(
          store,
          instance.run<T>({ kind: "inspect", label, body: ({ reader }) => work(reader) }),
        );
      const held = this.#files.find(key);
      if (held === undefined) break;
      await unlessDiskFull(store, held);
    }
    const result = readStored(store, ref, clock, work);
    // An event that loads the instance in the meantime waits until the file is free.
    this.#files.hold(key, Promise.allSettled([result]));
    return result;
  }

  /** Changes the tables of an instance in one of its turns, so that the instance runs what becomes due. */
  change<T>(
    definition: AgentDefinition,
    { account, name }: InstanceRef,
    label: string,
    work: (live: LiveAgent) => T,
  ): Promise<T> {
    return this.get(definition, account, name).run<T>({ kind: "manage", label, body: work });
  }

  /**
   * Gives an instance of this node to another one, or up (`null`). Its running turns end here; events that wait are held meanwhile, and then fail with
   * `InstanceElsewhereError`. Does nothing for an instance that this node does not own.
   */
  async handOver(ref: InstanceRef, to: string | null): Promise<void> {
    const { catalog, ownership } = this.#environment;
    const key = keyOf(ref);
    const name = databaseName(ref);
    const release = async (wasQuiet: boolean) => {
      const settle = await this.handOverHook?.leave(ref, to, wasQuiet);
      await catalog.disown([ref]);
      await this.release([name], to);
      settle?.();
      return new InstanceElsewhereError(to);
    };
    while (ownership?.isHeld(name) === true) {
      const instance = this.#instances.get(key);
      if (instance !== undefined) {
        if (await instance.handOver(release)) return;
        continue;
      }
      const held = this.#files.find(key);
      if (held === undefined) {
        const released = release(true);
        // An event in the meantime waits until the file is free, and then finds the new owner.
        this.#files.hold(key, released);
        await released;
      } else await held;
    }
  }

  /** Gives databases that are closed to another node, or up. The connections of their instances follow them. */
  async release(names: readonly string[], to: string | null): Promise<void> {
    const { hub, ownership } = this.#environment;
    await ownership?.release(names, to);
    for (const name of names) hub.onMoved?.(keyOf(refOf(name)));
  }

  /** Removes the instance and everything it stored; events that wait for it fail. */
  async destroy(ref: InstanceRef): Promise<void> {
    const key = keyOf(ref);
    this.#environment.hub.find(key)?.dismiss(4410, "the instance was destroyed");
    await this.#instances.get(key)?.end(new SignalboxError("agent_destroyed"));
    const removed = (this.#files.find(key) ?? Promise.resolve()).then(() => this.#remove(ref));
    // An event in the meantime creates a successor, which starts when the old data is gone.
    this.#files.hold(key, removed);
    await removed;
  }

  async #remove(ref: InstanceRef): Promise<void> {
    const { store, catalog, ownership } = this.#environment;
    // In a cluster another node may create a successor as soon as the data is gone: its entry must stay.
    const createdAt = ownership === null ? undefined : ((await catalog.find(ref))?.createdAt ?? 0);
    // The file first: a crash in between leaves an entry without data, never data without an entry.
    await store.destroy(databaseName(ref));
    await catalog.remove(ref, createdAt);
    await this.#onDestroy(ref);
  }

  /** Called in a turn of the instance, which cannot wait for its own end. */
  #destroyLater(instance: AnyInstance): Promise<void> {
    setImmediate(() => {
      this.destroy(instance.ref).catch((error: unknown) =>
        this.#environment.logger.error({ err: error, instance: instance.key }, "destroy failed"),
      );
    });
    return Promise.resolve();
  }

  /** Null when there is no room in memory. Throws `storage_unavailable` while no instance can write. */
  #wake({ account, agent, name }: InstanceRef): AnyInstance | null {
    this.#environment.store.requireRoom();
    const definition = this.#definitions.get(agent);
    if (definition === undefined || this.#isStopping || !this.#makeRoom()) return null;
    const ref = { account, agent, name };
    return this.#load(definition, ref, keyOf(ref), true);
  }

  #load(definition: AnyDefinition, ref: InstanceRef, key: string, isWoken: boolean): AnyInstance {
    const instance = new Instance(
      this.#environment,
      this.#events,
      definition,
      residentsOf(definition),
      ref,
      key,
    );
    this.#instances.set(key, instance);
    this.#byUse.use(instance);
    // At most a quarter as many files may be closing as can be open.
    const maxClosing = Math.ceil(this.#limits.maxActiveInstances / 4);
    // The start belongs to no turn, even if another agent's call caused it.
    runOutsideTurns(() => {
      instance.start(this.#files.whenFree(key, maxClosing), isWoken);
      this.#arrivals.arrived(key);
    });
    return instance;
  }

  #onLeave(instance: AnyInstance, { closed, isDisposable, wakeAt, failure }: Leaving): void {
    if (this.#instances.get(instance.key) === instance) this.#instances.delete(instance.key);
    this.#byUse.delete(instance);
    this.#files.hold(
      instance.key,
      closed.then(() => (isDisposable() ? this.#remove(instance.ref) : undefined)),
    );
    this.#waker.onLeave(instance, wakeAt, failure);
  }

  /** Hibernates an idle instance if necessary; false when the memory is full of busy ones. */
  #makeRoom(): boolean {
    this.#shrink(1);
    return this.#instances.size < this.#limits.maxActiveInstances;
  }

  /** Hibernates idle instances, least recently used first, until there is room for `room` more. */
  #shrink(room = 0): void {
    if (this.#instances.size + room <= this.#limits.maxActiveInstances) return;
    for (const instance of this.#byUse.oldestFirst()) {
      if (!instance.isIdle) continue;
      instance.hibernate();
      if (this.#instances.size + room <= this.#limits.maxActiveInstances) return;
    }
  }

  #sweep(): void {
    // While the store cannot write, a closed instance could not be checkpointed, and so could not be read until there is room.
    if (this.#environment.store.problem !== null) return;
    const idleSince = this.#environment.clock.now() - this.#limits.idleTimeoutMs;
    for (const instance of this.#byUse.oldestFirst()) {
      if (!instance.isIdle || instance.lastActiveAt > idleSince) continue;
      instance.hibernate();
      // Closing checkpoints the WAL, which blocks the event loop for a moment: one instance per iteration.
      setImmediate(() => this.#sweep());
      return;
    }
  }
}

/** How instances of a native agent's class are made. */
function residentsOf(definition: AnyDefinition): ResidentDefinition<Resident> {
  if (!(definition instanceof AgentDefinition)) return definition;
  const { kebab, initialSchema, isInterleaving } = definition;
  const residents: ResidentDefinition<LiveAgent> = {
    kebab,
    initialSchema,
    isInterleaving,
    keepsFailedWrites: false,
    turnTimeoutMs: undefined,
    create: (parts) => new LiveAgent({ ...parts, definition }),
  };
  return residents;
}
