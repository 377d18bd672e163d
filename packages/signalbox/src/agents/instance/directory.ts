/**
 * Finds the one instance of `(agent, name)` in memory or brings it there, and sends idle ones to sleep.
 *
 * Invariants:
 * 1. At most one instance per key takes events; a successor opens the database only after the predecessor has closed it.
 * 2. The number of open databases is bounded: past the limit the instance idle longest leaves first, and if none is idle, new ones are
 *    refused with `overloaded` rather than opened.
 * 3. Work of sleeping instances is found through the catalog's `next_due_at` alone; one timer serves all of them.
 */
import { SignalboxError } from "@signalbox/protocol";
import { RecencyList } from "../../core/recency-list.ts";
import type { InstanceRef } from "../../storage/ports/instance-store.ts";
import type { AgentDefinition } from "../agent-definition.ts";
import { runOutsideTurns } from "../turns/current-turn.ts";
import { type InstanceReader, readerOf } from "./inspection.ts";
import { Instance, type InstanceEvents, type InstanceParts } from "./instance.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";

export interface DirectoryLimits {
  readonly maxActiveInstances: number;
  readonly idleTimeoutMs: number;
}

/** Instances woken by one look at the catalog; more are woken by the next. */
const WAKE_BATCH = 100;
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Directory {
  readonly #environment: InstanceEnvironment;
  readonly #limits: DirectoryLimits;
  readonly #definitions: ReadonlyMap<string, AgentDefinition>;
  readonly #onDestroy: (ref: InstanceRef) => Promise<void>;
  readonly #instances = new Map<string, Instance>();
  readonly #byUse = new RecencyList<Instance>();
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #events: InstanceEvents;
  #sweepTimer: NodeJS.Timeout | undefined;
  #wakeTimer: NodeJS.Timeout | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;
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
    this.#events = {
      onIdle: () => this.#shrink(),
      onLeave: (instance, closed, wakeAt) => this.#onLeave(instance, closed, wakeAt),
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

  /** The instance, started if it was not in memory. Throws `overloaded` when no more can be opened. */
  get(definition: AgentDefinition, name: string): Instance {
    const key = `${definition.kebab}/${name}`;
    const known = this.#instances.get(key);
    if (known !== undefined) {
      this.#byUse.use(known);
      return known;
    }
    if (this.#isStopping) throw new SignalboxError("stopping", { headers: { "retry-after": "1" } });
    // It would wait for room with everybody who waits for it.
    this.#environment.store.requireRoom();
    this.#shrink(1);
    if (this.#instances.size >= this.#limits.maxActiveInstances) {
      throw new SignalboxError("overloaded", {
        message: "Too many instances are busy",
        headers: { "retry-after": "1" },
      });
    }
    const instance = new Instance(this.#environment, this.#events, definition, name);
    this.#instances.set(key, instance);
    this.#byUse.use(instance);
    // The start belongs to no turn, also when another agent's call caused it.
    runOutsideTurns(() => instance.start(this.#whenRoom(key)));
    return instance;
  }

  /** The instance if it is in memory. */
  find(ref: InstanceRef): Instance | undefined {
    return this.#instances.get(`${ref.agent}/${ref.name}`);
  }

  /** Reads an instance that exists: in a turn of its own if it is in memory, else from its file without running any of its code. */
  async read<T>(ref: InstanceRef, label: string, work: (reader: InstanceReader) => T): Promise<T> {
    const key = `${ref.agent}/${ref.name}`;
    for (;;) {
      const instance = this.#instances.get(key);
      if (instance !== undefined)
        return instance.run({ kind: "look", label, body: () => work(instance.parts) });
      const leaving = this.#leaving.get(key);
      if (leaving === undefined) break;
      await leaving;
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
    name: string,
    label: string,
    work: (parts: InstanceParts) => T,
  ): Promise<T> {
    const instance = this.get(definition, name);
    return instance.run({
      kind: "manage",
      label,
      body: () => work(instance.parts),
    });
  }

  async #readAsleep<T>(ref: InstanceRef, work: (reader: InstanceReader) => T): Promise<T> {
    const database = await this.#environment.store.open(ref);
    try {
      return work(readerOf(database, this.#environment.clock));
    } finally {
      await database.close();
    }
  }

  async start(): Promise<void> {
    const sweepMs = Math.max(50, Math.min(this.#limits.idleTimeoutMs / 2, 5000));
    this.#sweepTimer = setInterval(() => this.#sweep(), sweepMs).unref();
    await this.#wakeDue();
  }

  /** From now on no instance is brought into memory; those that are there go on. */
  drain(): void {
    this.#isStopping = true;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#sweepTimer);
    clearTimeout(this.#wakeTimer);
    const reason = new SignalboxError("stopping", { headers: { "retry-after": "1" } });
    await Promise.all([...this.#instances.values()].map((instance) => instance.end(reason)));
    await Promise.all(this.#leaving.values());
  }

  /** Removes the instance and everything it stored; events that were waiting for it fail. */
  async destroy(ref: InstanceRef): Promise<void> {
    const key = `${ref.agent}/${ref.name}`;
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

  /** Resolves when the predecessor is gone, and those on their way out hold few files. */
  async #whenRoom(key: string): Promise<void> {
    const maxLeaving = Math.ceil(this.#limits.maxActiveInstances / 4);
    await this.#leaving.get(key);
    while (this.#leaving.size > maxLeaving) await Promise.race(this.#leaving.values());
  }

  #onLeave(instance: Instance, closed: Promise<void>, wakeAt: number | null): void {
    if (this.#instances.get(instance.key) === instance) this.#instances.delete(instance.key);
    this.#byUse.delete(instance);
    this.#hold(instance.key, closed);
    if (wakeAt !== null) this.#wakeBy(wakeAt);
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
    const idleSince = this.#environment.clock.now() - this.#limits.idleTimeoutMs;
    for (const instance of this.#byUse.oldestFirst()) {
      if (!instance.isIdle || instance.lastActiveAt > idleSince) continue;
      instance.hibernate();
      // Closing folds the log into the file, which blocks for a moment: one at a time, the rest with the next look.
      setImmediate(() => this.#sweep());
      return;
    }
  }

  #wakeBy(at: number): void {
    if (at >= this.#wakeAt || this.#isStopping) return;
    this.#wakeAt = at;
    clearTimeout(this.#wakeTimer);
    const delay = Math.max(0, Math.min(at - this.#environment.clock.now(), MAX_TIMER_MS));
    // It never rejects: a failure is logged, and tried again.
    this.#wakeTimer = setTimeout(() => void this.#wakeDue(), delay).unref();
  }

  async #wakeDue(): Promise<void> {
    const { catalog, clock, logger } = this.#environment;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    try {
      await catalog.flush();
      const now = clock.now();
      const due = await catalog.due(now, WAKE_BATCH + this.#instances.size);
      const asleep = due.filter(({ agent, name }) => !this.#instances.has(`${agent}/${name}`));
      for (const { agent, name } of asleep.slice(0, WAKE_BATCH)) {
        const definition = this.#definitions.get(agent);
        // Work of an agent whose module is not loaded any more waits until it is again.
        if (definition !== undefined && !this.#isStopping) this.get(definition, name);
      }
      const next = await catalog.nextDueAfter(now);
      if (asleep.length > WAKE_BATCH) this.#wakeBy(now + 100);
      else if (next !== null) this.#wakeBy(next);
    } catch (error) {
      logger.warn({ err: error }, "waking instances with due work failed; trying again");
      this.#wakeBy(clock.now() + 1000);
    }
  }
}
