/**
 * Finds the instance of `(account, agent, name)` in memory or loads it.
 *
 * Invariants:
 * 1. At most one instance per key takes events; a successor opens the database only after the predecessor has closed it.
 * 2. The number of open databases is bounded: beyond the limit the instance that was used least recently hibernates first (`InstanceMemory`). If
 *    none is idle, new instances are refused with `overloaded`; those of an account whose own are busy in two thirds of them, too.
 * 3. In a cluster, an instance that another node has taken leaves memory at once (`Instance.fence`); `handOver` gives one to another node.
 * 4. Due work of instances that are not in memory is found only through the catalog's `next_due_at` (`Waker`).
 */
import { SignalboxError } from "@signalbox/protocol";
import { LoopShare } from "../../core/loop-share.ts";
import { overloaded } from "../../core/overload.ts";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import { databaseName, type InstanceRef, keyOf, refOf } from "./instance-ref.ts";
import { runOutsideTurns } from "../../engines/turn-runtime/index.ts";
import { AgentDefinition } from "./agent-definition.ts";
import { Arrivals } from "./arrivals.ts";
import { FileHolds } from "./file-holds.ts";
import { type InstanceReader, readStored, unlessDiskFull } from "./inspection.ts";
import { type AnyInstance, Instance } from "./instance.ts";
import type { AnyDefinition, InstanceClasses } from "./instance-classes.ts";
import type { InstanceEvents } from "./instance-events.ts";
import { MAX_CUT_OFFS } from "../work/cut-off.ts";
import { InstanceGoneError } from "./instance-gone-error.ts";
import { InstanceMemory, type MemoryLimits } from "./instance-memory.ts";
import type { HandOverHook } from "./hand-over-hook.ts";
import { FENCED_PAUSE_MS, type Leaving } from "./leaving.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import { LiveAgent } from "./live-agent.ts";
import type { Resident, ResidentDefinition } from "./resident.ts";
import { type DueSource, Waker } from "./waker.ts";

/**
 * Half of what other work in bulk has: a start is the part of a wake that is counted. Its work, its sync and its end follow in later iterations of the
 * event loop, where they take as long again beside the starts of others.
 */
const SHARE_MS = 1;

export interface DirectoryParts {
  readonly environment: InstanceEnvironment;
  readonly limits: MemoryLimits;
  readonly classes: Pick<InstanceClasses, "names" | "find">;
  /** The instance is about to be removed, with everything that it stored. */
  readonly beforeDestroy: (ref: InstanceRef) => Promise<void>;
  /** The instance and everything it stored are gone. */
  readonly onDestroy: (ref: InstanceRef) => Promise<void>;
}

export class Directory {
  readonly #environment: InstanceEnvironment;
  readonly #limits: MemoryLimits;
  readonly #classes: DirectoryParts["classes"];
  readonly #beforeDestroy: (ref: InstanceRef) => Promise<void>;
  readonly #onDestroy: (ref: InstanceRef) => Promise<void>;
  readonly #memory: InstanceMemory;
  readonly #files: FileHolds;
  readonly #arrivals = new Arrivals();
  /** Of instances in memory that are being destroyed: settled when their data is gone. */
  readonly #removals = new WeakMap<AnyInstance, PromiseWithResolvers<void>>();
  /** Instances with due work: how often in a row their storage has ended them. */
  readonly #cutOffs = new Map<string, number>();
  readonly #events: InstanceEvents<AnyInstance>;
  readonly #waker: Waker;
  readonly #movedListeners = new Set<(key: string) => void>();
  /** For loading and ending instances in bulk. */
  readonly #share = new LoopShare(SHARE_MS);
  #handOverHook: HandOverHook | null = null;
  #isStopping = false;

  constructor({ environment, limits, classes, beforeDestroy, onDestroy }: DirectoryParts) {
    this.#environment = environment;
    this.#limits = limits;
    this.#classes = classes;
    this.#beforeDestroy = beforeDestroy;
    this.#onDestroy = onDestroy;
    this.#memory = new InstanceMemory(limits, environment.clock, environment.store);
    this.#files = new FileHolds(environment.logger);
    this.#waker = new Waker({
      ...environment,
      share: this.#share,
      agents: () => classes.names(),
      // The other half is for events from outside.
      maxBusy: Math.max(1, Math.floor(limits.maxActiveInstances / 2)),
      isInMemory: (ref) => this.#memory.has(keyOf(ref)),
      wake: (ref) => this.#wake(ref),
      putAway: (instance) => this.#memory.putAway(instance),
    });
    this.#events = {
      onIdle: (instance) => {
        this.#memory.shrink();
        this.#waker.onIdle(instance);
      },
      onLeave: (instance, left) => this.#onLeave(instance, left),
      onDestroyRequest: (instance) => this.#destroyLater(instance),
    };
    environment.ownership?.onFenced(({ name, reason }) => {
      const key = keyOf(refOf(name));
      const instance = this.#memory.find(key);
      if (instance !== undefined) instance.fence(new InstanceFencedError(reason));
      // It has left memory, and its last commits may not be stored: it may have more to do than it said.
      else if (reason !== "taken") this.#waker.wakeBy(environment.clock.now() + FENCED_PAUSE_MS);
      this.#moved(key);
    });
  }

  /** Calls back with the key of each instance that runs at another node from now on, or may. Returns a function that removes the listener. */
  onMoved(listener: (key: string) => void): () => void {
    this.#movedListeners.add(listener);
    return () => void this.#movedListeners.delete(listener);
  }

  /** What goes with an instance to another node; null for nothing. */
  get handOverHook(): HandOverHook | null {
    return this.#handOverHook;
  }

  onHandOver(hook: HandOverHook): void {
    this.#handOverHook = hook;
  }

  get size(): number {
    return this.#memory.size;
  }

  /** The instances in memory. */
  instances(): Iterable<AnyInstance> {
    return [...this.#memory.values()];
  }

  get waitingTurns(): number {
    let count = 0;
    for (const instance of this.#memory.values()) count += instance.waitingTurns;
    return count;
  }

  /** No instance has work in progress, or leaves memory, and none is looked for. */
  get isQuiet(): boolean {
    if (!this.#waker.isWaiting || !this.#files.isFree) return false;
    for (const instance of this.#memory.values()) if (!instance.isIdle) return false;
    return true;
  }

  start(): void {
    this.#memory.startSweeping();
    this.#waker.start();
  }

  /** A class was loaded after the start: its instances may have due work. */
  definitionAdded(): void {
    if (this.#memory.isSweeping && !this.#isStopping) this.#waker.start();
  }

  /** The clock was set: what is due by now may not be what the timers wait for. */
  clockChanged(): void {
    if (this.#isStopping) return;
    for (const instance of this.#memory.values()) instance.clockChanged();
    this.#waker.start();
  }

  /** From now on no instance is loaded; those in memory continue. */
  drain(): void {
    this.#isStopping = true;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#memory.stopSweeping();
    await this.#waker.stop();
    const reason = new SignalboxError("stopping", { headers: { "retry-after": "1" } });
    await Promise.all([...this.#memory.values()].map((instance) => instance.end(reason)));
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
    const known = this.#memory.find(key);
    if (known !== undefined) {
      this.#memory.used(known);
      return known;
    }
    if (this.#isStopping) throw new SignalboxError("stopping", { headers: { "retry-after": "1" } });
    // On a full disk the instance could not open its database, and its callers would wait with it.
    this.#environment.store.requireRoom();
    if (!this.#memory.makeRoom(account)) {
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
    return this.#memory.has(key);
  }

  /** Ends all instances of an agent that are in memory; the next events load them again. */
  async endAll(agent: string, reason: unknown): Promise<void> {
    const ended = [...this.#memory.values()].filter(({ ref }) => ref.agent === agent);
    const end = async (instance: AnyInstance) => {
      // Closing a database takes a part of a millisecond, and there may be thousands.
      await this.#share.step();
      await instance.end(reason);
    };
    await Promise.all(ended.map(end));
  }

  /** Wakes due instances that were left by another node. Resolves when there are no more. */
  wakeOrphans(source: DueSource): Promise<void> {
    return this.#waker.wakeAll(source);
  }

  /** The instance if it is in memory. */
  find(ref: InstanceRef): AnyInstance | undefined {
    return this.#memory.find(keyOf(ref));
  }

  /** True for an instance that is in memory or in the catalog. */
  async exists(ref: InstanceRef): Promise<boolean> {
    return this.find(ref) !== undefined || (await this.#environment.catalog.find(ref)) !== undefined;
  }

  /** Calls back once, when the instance of this key next comes into memory. The returned function cancels that. */
  onArrival(key: string, callback: () => void): () => void {
    return this.#arrivals.once(key, callback);
  }

  /** Reads what an instance that exists has committed: beside its turns if it is in memory, else from its file without running any of its code. */
  async read<T>(ref: InstanceRef, label: string, work: (reader: InstanceReader) => T): Promise<T> {
    const { store, clock } = this.#environment;
    const key = keyOf(ref);
    for (let isCertain = true; ;) {
      const instance = this.#memory.find(key);
      if (instance !== undefined) {
        const read =
          instance.observe(({ reader }) => work(reader)) ??
          instance.run<T>({ kind: "inspect", label, body: ({ reader }) => work(reader) });
        try {
          return await unlessDiskFull(store, read);
        } catch (error) {
          // It has left memory meanwhile.
          if (error instanceof InstanceGoneError && this.#memory.find(key) !== instance) continue;
          throw error;
        }
      }
      const held = this.#files.find(key);
      if (held !== undefined) {
        await unlessDiskFull(store, held);
        isCertain = false;
      } else if (isCertain) break;
      else if (await this.exists(ref)) isCertain = true;
      // It was destroyed meanwhile, and reading must not create it again.
      else throw new SignalboxError("agent_instance_not_found");
    }
    const result = readStored(store, ref, clock, work);
    // An event that loads the instance in the meantime waits until the file is free.
    this.#files.hold(key, Promise.allSettled([result]));
    return result;
  }

  /**
   * Changes the tables of an instance that exists in one of its turns, so that the instance runs what becomes due. One that is being destroyed is not
   * created again: `agent_instance_not_found`.
   */
  async change<T>(
    definition: AgentDefinition,
    ref: InstanceRef,
    label: string,
    work: (live: LiveAgent) => T,
  ): Promise<T> {
    await this.#whenRemoved(ref);
    // An operator must not wait for a turn that hangs.
    const turn = { kind: "manage", label, isConcurrent: true, body: work } as const;
    return this.get(definition, ref.account, ref.name).run<T>(turn);
  }

  /** If the file is in use by a removal, waits for its end. */
  async #whenRemoved(ref: InstanceRef): Promise<void> {
    const key = keyOf(ref);
    let hasWaited = false;
    for (let held = this.#files.find(key); held !== undefined; held = this.#files.find(key)) {
      if (this.#memory.has(key)) return;
      await unlessDiskFull(this.#environment.store, held);
      hasWaited = true;
    }
    if (hasWaited && !(await this.exists(ref))) throw new SignalboxError("agent_instance_not_found");
  }

  /**
   * Gives an instance of this node to another one, or up (`null`). Its running turns end here; events that wait are held meanwhile, and then fail with
   * `InstanceElsewhereError`. Does nothing for an instance that this node does not own.
   */
  async handOver(ref: InstanceRef, to: string | null, graceMs?: number): Promise<void> {
    const { catalog, ownership, problems } = this.#environment;
    const key = keyOf(ref);
    const name = databaseName(ref);
    const release = async (wasQuiet: boolean) => {
      const settle = await this.#handOverHook?.leave(ref, to, wasQuiet);
      await problems.flush();
      await catalog.disown([ref]);
      await this.release([name], to);
      settle?.();
      return new InstanceElsewhereError(to);
    };
    while (ownership?.isHeld(name) === true) {
      const instance = this.#memory.find(key);
      if (instance !== undefined) {
        if (await instance.handOver(release, graceMs)) return;
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
    await this.#environment.ownership?.release(names, to);
    for (const name of names) this.#moved(keyOf(refOf(name)));
  }

  #moved(key: string): void {
    for (const listener of this.#movedListeners) listener(key);
  }

  /** Removes the instance and everything it stored; events that wait for it fail. An event in the meantime creates a successor, without the old data. */
  async destroy(ref: InstanceRef): Promise<void> {
    const key = keyOf(ref);
    this.#environment.hub.find(key)?.dismiss(4410, "the instance was destroyed");
    const instance = this.#memory.find(key);
    if (instance === undefined) {
      const removed = (this.#files.find(key) ?? Promise.resolve()).then(() => this.#remove(ref));
      this.#files.hold(key, removed);
      await removed;
      return;
    }
    let removal = this.#removals.get(instance);
    if (removal === undefined) {
      removal = Promise.withResolvers<void>();
      // It may fail before `end` does.
      removal.promise.catch(() => undefined);
      this.#removals.set(instance, removal);
    }
    await instance.end(new SignalboxError("agent_destroyed"));
    await removal.promise;
  }

  async #remove(ref: InstanceRef): Promise<void> {
    const { store, catalog, ownership, problems, timeline } = this.#environment;
    // In a cluster another node may create a successor as soon as the data is gone: its entry must stay.
    const createdAt = ownership === null ? undefined : ((await catalog.find(ref))?.createdAt ?? 0);
    await this.#beforeDestroy(ref);
    // The file first: a crash in between leaves an entry without data, never data without an entry.
    await store.destroy(databaseName(ref));
    await problems.remove(ref);
    await timeline?.remove(ref);
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
    const definition = this.#classes.find(agent);
    if (definition === undefined || this.#isStopping || !this.#memory.makeRoom(account)) return null;
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
    this.#memory.add(instance);
    // At most a quarter as many files may be closing as can be open.
    const maxClosing = Math.ceil(this.#limits.maxActiveInstances / 4);
    // The start belongs to no turn, even if another agent's call caused it.
    runOutsideTurns(() => {
      instance.start(this.#files.whenFree(key, maxClosing), isWoken, this.#isResumed(key));
      this.#arrivals.arrived(key);
    });
    return instance;
  }

  #isResumed(key: string): boolean {
    const cutOffs = this.#cutOffs.get(key) ?? 0;
    return cutOffs > 0 && cutOffs <= MAX_CUT_OFFS;
  }

  #onLeave(instance: AnyInstance, { closed, isDisposable, wakeAt, failure, isCutOff }: Leaving): void {
    this.#memory.delete(instance);
    if (isCutOff && wakeAt !== null)
      this.#cutOffs.set(instance.key, (this.#cutOffs.get(instance.key) ?? 0) + 1);
    else this.#cutOffs.delete(instance.key);
    const removal = this.#removals.get(instance);
    // One hold for both: a successor that saw the file free in between would open what is about to be removed.
    const ended = closed.then(() =>
      removal !== undefined || isDisposable() ? this.#remove(instance.ref) : undefined,
    );
    this.#files.hold(instance.key, ended);
    if (removal !== undefined) ended.then(removal.resolve, removal.reject);
    this.#waker.onLeave(instance, wakeAt, failure);
  }
}

/** How instances of a native agent's class are made. */
function residentsOf(definition: AnyDefinition): ResidentDefinition<Resident> {
  if (!(definition instanceof AgentDefinition)) return definition;
  const { kebab, initialSchema, isInterleaving, isRecorded } = definition;
  const residents: ResidentDefinition<LiveAgent> = {
    kebab,
    initialSchema,
    isInterleaving,
    keepsFailedWrites: false,
    isRecorded,
    turnTimeoutMs: undefined,
    create: (parts) => new LiveAgent({ ...parts, definition }),
  };
  return residents;
}
