/**
 * Finds the one instance of `(account, agent, name)` in memory or brings it there, and sends idle ones to sleep.
 *
 * Invariants:
 * 1. At most one instance per key takes events; a successor opens the database only after the predecessor has closed it.
 * 2. The number of open databases is bounded: past the limit the instance idle longest leaves first, and if none is idle, new ones are
 *    refused with `overloaded` rather than opened.
 * 3. Work of sleeping instances is found through the catalog's `next_due_at` alone (`Waker`).
 */
import { SignalboxError } from "@signalbox/protocol";
import { RecencyList } from "../../core/recency-list.ts";
import type { InstanceRef } from "../../engines/instance-store/index.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import { runOutsideTurns } from "../../engines/turn-runtime/index.ts";
import { type InstanceReader, readerOf } from "./inspection.ts";
import { Instance, type InstanceEvents, type InstanceParts, type Leaving } from "./instance.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import { keyOf } from "./instance-key.ts";
import { Waker } from "./waker.ts";

/** How long a look at an instance waits for what it wrote to be stored, once the disk is full. */
const LOOK_PATIENCE_MS = 1000;

export interface DirectoryLimits {
  readonly maxActiveInstances: number;
  readonly idleTimeoutMs: number;
}

export class Directory {
  readonly #environment: InstanceEnvironment;
  readonly #limits: DirectoryLimits;
  readonly #definitions: ReadonlyMap<string, AgentDefinition>;
  readonly #onDestroy: (ref: InstanceRef) => Promise<void>;
  readonly #instances = new Map<string, Instance>();
  readonly #byUse = new RecencyList<Instance>();
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #arrivals = new Map<string, Set<() => void>>();
  readonly #events: InstanceEvents;
  readonly #waker: Waker;
  #sweepTimer: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(
    environment: InstanceEnvironment,
    limits: DirectoryLimits,
    definitions: ReadonlyMap<string, AgentDefinition>,
    onDestroy: (ref: InstanceRef) => Promise<void>,
  ) {
    this.#environment = environment;
    this.#limits = limits;
    this.#definitions = definitions;
    this.#onDestroy = onDestroy;
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
      onDestroyRequest: (instance) => this.#destroySoon(instance),
    };
  }

  get size(): number {
    return this.#instances.size;
  }

  get waitingTurns(): number {
    let count = 0;
    for (const instance of this.#instances.values()) count += instance.waitingTurns;
    return count;
  }

  /** The instance, started if it was not in memory. Throws `overloaded` when no more can be opened. `key` is for callers that have it. */
  get(
    definition: AgentDefinition,
    account: string,
    name: string,
    key: string = definition.keyOf(account, name),
  ): Instance {
    const known = this.#instances.get(key);
    if (known !== undefined) {
      this.#byUse.use(known);
      return known;
    }
    if (this.#isStopping) throw new SignalboxError("stopping", { headers: { "retry-after": "1" } });
    // It would wait for room with everybody who waits for it.
    this.#environment.store.requireRoom();
    if (!this.#hasRoom()) {
      throw new SignalboxError("overloaded", {
        message: "Too many instances are busy",
        headers: { "retry-after": "1" },
      });
    }
    return this.#bring(definition, { account, agent: definition.kebab, name }, key, false);
  }

  /** The instance if it is in memory. */
  find(ref: InstanceRef): Instance | undefined {
    return this.#instances.get(keyOf(ref));
  }

  /** True for an instance that is in memory, or in the catalog. */
  async exists(ref: InstanceRef): Promise<boolean> {
    return this.find(ref) !== undefined || (await this.#environment.catalog.find(ref)) !== undefined;
  }

  /** Calls back once, when the instance of this key next comes into memory; the result stops that. */
  onArrival(key: string, callback: () => void): () => void {
    let callbacks = this.#arrivals.get(key);
    if (callbacks === undefined) {
      callbacks = new Set();
      this.#arrivals.set(key, callbacks);
    }
    callbacks.add(callback);
    const mine = callbacks;
    return () => {
      mine.delete(callback);
      if (mine.size === 0 && this.#arrivals.get(key) === mine) this.#arrivals.delete(key);
    };
  }

  /** Reads an instance that exists: in a turn of its own if it is in memory, else from its file without running any of its code. */
  async read<T>(ref: InstanceRef, label: string, work: (reader: InstanceReader) => T): Promise<T> {
    const key = keyOf(ref);
    for (;;) {
      const instance = this.#instances.get(key);
      if (instance !== undefined)
        return this.#unlessFull(instance.run({ kind: "look", label, body: () => work(instance.parts) }));
      const leaving = this.#leaving.get(key);
      if (leaving === undefined) break;
      await this.#unlessFull(leaving);
    }
    const result = this.#readAsleep(ref, work);
    // Whoever wakes the instance meanwhile waits until the file is free.
    this.#hold(
      key,
      result.then(
        () => undefined,
        () => undefined,
      ),
    );
    return result;
  }

  /** Changes an instance's own tables in a turn of it, so that what becomes due runs. */
  change<T>(
    definition: AgentDefinition,
    { account, name }: InstanceRef,
    label: string,
    work: (parts: InstanceParts) => T,
  ): Promise<T> {
    const instance = this.get(definition, account, name);
    return instance.run({
      kind: "manage",
      label,
      body: () => work(instance.parts),
    });
  }

  /** Waits, but not for room on a full disk: those who only read are told soon what is wrong. */
  async #unlessFull<T>(awaited: Promise<T>): Promise<T> {
    const { store } = this.#environment;
    const refusal = Promise.withResolvers<never>();
    const timer = setInterval(() => {
      try {
        store.requireRoom();
      } catch (error) {
        refusal.reject(error);
      }
    }, LOOK_PATIENCE_MS);
    try {
      return await Promise.race([awaited, refusal.promise]);
    } finally {
      clearInterval(timer);
    }
  }

  async #readAsleep<T>(ref: InstanceRef, work: (reader: InstanceReader) => T): Promise<T> {
    const database = await this.#environment.store.openToRead(ref);
    try {
      return work(readerOf(database, this.#environment.clock));
    } finally {
      await database.close();
    }
  }

  start(): void {
    const sweepMs = Math.max(50, Math.min(this.#limits.idleTimeoutMs / 2, 5000));
    this.#sweepTimer = setInterval(() => this.#sweep(), sweepMs).unref();
    this.#waker.start();
  }

  /** From now on no instance is brought into memory; those that are there go on. */
  drain(): void {
    this.#isStopping = true;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#sweepTimer);
    await this.#waker.stop();
    const reason = new SignalboxError("stopping", { headers: { "retry-after": "1" } });
    await Promise.all([...this.#instances.values()].map((instance) => instance.end(reason)));
    await Promise.all(this.#leaving.values());
  }

  /** Removes the instance and everything it stored; events that were waiting for it fail. */
  async destroy(ref: InstanceRef): Promise<void> {
    const key = keyOf(ref);
    this.#environment.hub.find(key)?.dismiss(4410, "the instance was destroyed");
    await this.#instances.get(key)?.end(new SignalboxError("agent_destroyed"));
    const removed = (this.#leaving.get(key) ?? Promise.resolve()).then(() => this.#remove(ref));
    // A successor that an event asks for meanwhile starts when the old data is gone.
    this.#hold(key, removed);
    await removed;
  }

  async #remove(ref: InstanceRef): Promise<void> {
    const { store, catalog } = this.#environment;
    // The file goes first: a crash in between leaves an entry without data, never data without an entry.
    await store.destroy(ref);
    await catalog.remove(ref);
    await this.#onDestroy(ref);
  }

  /** From inside a turn of the instance: it cannot wait for its own end. */
  #destroySoon(instance: Instance): Promise<void> {
    setImmediate(() => {
      this.destroy(instance.ref).catch((error: unknown) =>
        this.#environment.logger.error({ err: error, instance: instance.key }, "destroy failed"),
      );
    });
    return Promise.resolve();
  }

  /** For the waker: null when there is no room in memory. Throws `storage_unavailable` while no instance can write. */
  #wake(ref: InstanceRef): Instance | null {
    this.#environment.store.requireRoom();
    const definition = this.#definitions.get(ref.agent);
    if (definition === undefined || this.#isStopping || !this.#hasRoom()) return null;
    return this.#bring(definition, ref, keyOf(ref), true);
  }

  /** Sends an idle instance to sleep if that is needed. */
  #hasRoom(): boolean {
    this.#shrink(1);
    return this.#instances.size < this.#limits.maxActiveInstances;
  }

  #bring(definition: AgentDefinition, ref: InstanceRef, key: string, isWoken: boolean): Instance {
    const { account, agent, name } = ref;
    const instance = new Instance(this.#environment, this.#events, definition, { account, agent, name }, key);
    this.#instances.set(key, instance);
    this.#byUse.use(instance);
    // The start belongs to no turn, also when another agent's call caused it.
    runOutsideTurns(() => {
      instance.start(this.#whenRoom(key), isWoken);
      this.#arrived(key);
    });
    return instance;
  }

  #arrived(key: string): void {
    const callbacks = this.#arrivals.get(key);
    if (callbacks === undefined) return;
    this.#arrivals.delete(key);
    for (const callback of callbacks) callback();
  }

  /** Resolves when the predecessor is gone, and those on their way out hold few files. */
  async #whenRoom(key: string): Promise<void> {
    const maxLeaving = Math.ceil(this.#limits.maxActiveInstances / 4);
    await this.#leaving.get(key);
    while (this.#leaving.size > maxLeaving) await Promise.race(this.#leaving.values());
  }

  #onLeave(instance: Instance, { closed, wakeAt, hasFailed }: Leaving): void {
    if (this.#instances.get(instance.key) === instance) this.#instances.delete(instance.key);
    this.#byUse.delete(instance);
    this.#hold(instance.key, closed);
    this.#waker.onLeave(instance, wakeAt, hasFailed);
  }

  #hold(key: string, until: Promise<void>): void {
    const settled = until.catch((error: unknown) => {
      this.#environment.logger.error({ err: error, instance: key }, "closing an instance failed");
    });
    const held = settled.then(() => {
      if (this.#leaving.get(key) === held) this.#leaving.delete(key);
    });
    this.#leaving.set(key, held);
  }

  /** Sends the longest idle to sleep until there is room for `room` more. */
  #shrink(room = 0): void {
    if (this.#instances.size + room <= this.#limits.maxActiveInstances) return;
    for (const instance of this.#byUse.oldestFirst()) {
      if (!instance.isIdle) continue;
      instance.hibernate();
      if (this.#instances.size + room <= this.#limits.maxActiveInstances) return;
    }
  }

  #sweep(): void {
    // It could not bring its log to its file, and could not be read until there is room again.
    if (this.#environment.store.problem !== null) return;
    const idleSince = this.#environment.clock.now() - this.#limits.idleTimeoutMs;
    for (const instance of this.#byUse.oldestFirst()) {
      if (!instance.isIdle || instance.lastActiveAt > idleSince) continue;
      instance.hibernate();
      // Closing folds the log into the file, which blocks for a moment: one at a time, the rest with the next look.
      setImmediate(() => this.#sweep());
      return;
    }
  }
}
