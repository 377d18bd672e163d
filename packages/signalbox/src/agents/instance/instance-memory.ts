/**
 * The instances in memory: at most so many, and idle ones leave in the order of their last use.
 *
 * Invariants:
 * 1. Only idle instances are sent away. If all are busy, there is no room for another one; and an account whose own fill two thirds with work has no room
 *    before that (`BusyShares`).
 * 2. With a client, an instance whose code waits for a timer stays beyond its time, unless there is no room for another one.
 * 3. While the store cannot write, idle instances stay beyond their time: one that is closed then could not be read until there is room.
 */
import type { Clock } from "../../core/clock.ts";
import { RecencyList } from "../../core/recency-list.ts";
import type { InstanceStore } from "../../engines/instance-store/index.ts";
import { BusyShares } from "./busy-shares.ts";
import type { AnyInstance } from "./instance.ts";

/** Bounds of the interval at which idle instances hibernate; within them it is half of the idle timeout. */
const MIN_SWEEP_MS = 50;
const MAX_SWEEP_MS = 5000;

export interface MemoryLimits {
  readonly maxActiveInstances: number;
  readonly idleTimeoutMs: number;
}

export class InstanceMemory {
  readonly #limits: MemoryLimits;
  readonly #clock: Clock;
  readonly #store: Pick<InstanceStore, "problem">;
  readonly #instances = new Map<string, AnyInstance>();
  readonly #byUse = new RecencyList<AnyInstance>();
  readonly #shares: BusyShares;
  #sweepTimer: NodeJS.Timeout | undefined;

  constructor(limits: MemoryLimits, clock: Clock, store: Pick<InstanceStore, "problem">) {
    this.#limits = limits;
    this.#clock = clock;
    this.#store = store;
    this.#shares = new BusyShares(limits.maxActiveInstances, () => this.#instances.values());
  }

  get size(): number {
    return this.#instances.size;
  }

  has(key: string): boolean {
    return this.#instances.has(key);
  }

  find(key: string): AnyInstance | undefined {
    return this.#instances.get(key);
  }

  values(): Iterable<AnyInstance> {
    return this.#instances.values();
  }

  add(instance: AnyInstance): void {
    this.#instances.set(instance.key, instance);
    this.#byUse.use(instance);
  }

  used(instance: AnyInstance): void {
    this.#byUse.use(instance);
  }

  delete(instance: AnyInstance): void {
    // A successor may have its place.
    if (this.#instances.get(instance.key) === instance) this.#instances.delete(instance.key);
    this.#byUse.delete(instance);
  }

  get isSweeping(): boolean {
    return this.#sweepTimer !== undefined;
  }

  startSweeping(): void {
    const sweepMs = Math.max(MIN_SWEEP_MS, Math.min(this.#limits.idleTimeoutMs / 2, MAX_SWEEP_MS));
    this.#sweepTimer = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  stopSweeping(): void {
    clearInterval(this.#sweepTimer);
  }

  /** Hibernates an idle instance if necessary; false when the memory is full of busy ones, or the account has too many of them. */
  makeRoom(account: string): boolean {
    if (!this.#shares.hasRoomFor(account, this.#instances.size)) return false;
    this.shrink(1);
    return this.#instances.size < this.#limits.maxActiveInstances;
  }

  /** Hibernates idle instances, least recently used first, until there is room for `room` more. */
  shrink(room = 0): void {
    if (this.#instances.size + room <= this.#limits.maxActiveInstances) return;
    for (const instance of this.#byUse.oldestFirst()) {
      if (!instance.isIdle) continue;
      instance.hibernate();
      if (this.#instances.size + room <= this.#limits.maxActiveInstances) return;
    }
  }

  /** Hibernates an idle instance before its time, unless a client is connected to it or its next work is due within that time. */
  putAway(instance: AnyInstance): void {
    if (this.#store.problem !== null || !instance.isIdle || instance.hasClients) return;
    const dueAt = instance.nextDueAt;
    if (dueAt === undefined || (dueAt !== null && dueAt <= this.#clock.now() + this.#limits.idleTimeoutMs))
      return;
    instance.hibernate();
  }

  #sweep(): void {
    if (this.#store.problem !== null) return;
    const idleSince = this.#clock.now() - this.#limits.idleTimeoutMs;
    for (const instance of this.#byUse.oldestFirst()) {
      if (!instance.isIdle || instance.lastActiveAt > idleSince || instance.isKept(idleSince)) continue;
      instance.hibernate();
      // Closing checkpoints the WAL, which blocks the event loop for a moment: one instance per iteration.
      setImmediate(() => this.#sweep());
      return;
    }
  }
}
