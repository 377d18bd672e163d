/**
 * Brings instances with due work into memory that nobody else touches: after a restart, and whenever the time of a sleeping one has come.
 *
 *   waiting (one timer for all) → looking (pages of due instances, each woken when there is room) → waiting
 *
 * Invariants:
 * 1. Every due instance of a loaded agent is reached, however many there are: a look ends when the catalog has no more of them. An instance that
 *    is in memory looks after itself, and is reported here when it leaves with work to do.
 * 2. Woken instances that are busy are bounded, and so are those that start: the rest waits its turn, agents taking turns page by page, and events
 *    from outside find room. Where there is none at all, the look goes on when an instance becomes idle or leaves.
 * 3. Due work of agents that are not loaded is not even read. It runs after a start that loads them.
 * 4. An instance that fails again and again is left alone for longer and longer, and holds up no other.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Instance } from "./instance.ts";
import type { DueEntry, InstanceCatalog } from "./instance-catalog.ts";
import { keyOf } from "./instance-key.ts";

/** Due instances read at once. */
const PAGE = 100;
/** Woken instances that open their databases at the same time; more would only hold up everything else. */
const MAX_STARTING = 32;
/** After a failed look at the catalog. */
const RETRY_MS = 1000;
/** The pause after an instance's first failure, which doubles with each further one, and its limit. */
const FIRST_PAUSE_MS = 10_000;
const MAX_PAUSE_MS = 10 * 60_000;
/** Longest time node's timers can hold. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface WakerParts {
  readonly catalog: Pick<InstanceCatalog, "due" | "nextDueAfter" | "flush">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Kebab-case names of the loaded agents. */
  readonly agents: () => Iterable<string>;
  /** Woken instances that may be busy at once. */
  readonly maxBusy: number;
  readonly isInMemory: (ref: InstanceRef) => boolean;
  /** Brings it into memory; null when there is no room there. Throws when no instance can be opened now: the look begins again later. */
  readonly wake: (ref: InstanceRef) => Instance | null;
}

interface Failures {
  count: number;
  until: number;
}

export class Waker {
  readonly #parts: WakerParts;
  readonly #starting = new Set<Instance>();
  readonly #busy = new Set<Instance>();
  /** Of instances with due work, by key. */
  readonly #failures = new Map<string, Failures>();
  #timer: NodeJS.Timeout | undefined;
  /** When to look next at the latest. */
  #wakeAt = Number.POSITIVE_INFINITY;
  #looking: Promise<void> | null = null;
  /** Set while a look waits for room. */
  #onRoom: (() => void) | null = null;
  #isStopped = false;

  constructor(parts: WakerParts) {
    this.#parts = parts;
  }

  /** Looks at once, and from then on whenever something is due. */
  start(): void {
    this.wakeBy(this.#parts.clock.now());
  }

  /** A sleeping instance has work at that time. */
  wakeBy(at: number): void {
    if (at >= this.#wakeAt || this.#isStopped) return;
    this.#wakeAt = at;
    if (this.#looking === null) this.#arm();
  }

  /** Nothing runs or waits in the instance any more. */
  onIdle(instance: Instance): void {
    if (this.#busy.size > 0) this.#busy.delete(instance);
    if (this.#failures.size > 0) this.#failures.delete(instance.key);
    this.#onRoom?.();
  }

  /** The instance leaves memory; `wakeAt` is when it has work again, null for never. */
  onLeave(instance: Instance, wakeAt: number | null, hasFailed: boolean): void {
    this.#starting.delete(instance);
    this.#busy.delete(instance);
    if (wakeAt === null) this.#failures.delete(instance.key);
    else {
      if (hasFailed) this.#countFailure(instance.key);
      this.wakeBy(wakeAt);
    }
    this.#onRoom?.();
  }

  /** Wakes no more; resolves when the look in progress has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#onRoom?.();
    await this.#looking;
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped || this.#wakeAt === Number.POSITIVE_INFINITY) return;
    const delay = Math.max(0, Math.min(this.#wakeAt - this.#parts.clock.now(), MAX_TIMER_MS));
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().finally(() => {
        this.#looking = null;
        this.#arm();
      });
    }, delay).unref();
  }

  async #look(): Promise<void> {
    const { catalog, clock, logger } = this.#parts;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    try {
      await catalog.flush();
      const seenUntil = clock.now();
      await this.#wakeDue();
      for (const agent of this.#parts.agents()) {
        const next = await catalog.nextDueAfter(agent, seenUntil);
        if (next !== null) this.wakeBy(next);
      }
    } catch (error) {
      // That storage is unavailable is reported where it is found out.
      if (!(error instanceof SignalboxError && error.id === "storage_unavailable"))
        logger.warn({ err: error }, "waking instances with due work failed; trying again");
      this.wakeBy(clock.now() + RETRY_MS);
    }
  }

  async #wakeDue(): Promise<void> {
    const { agents, catalog, clock } = this.#parts;
    let unread: { agent: string; after: DueEntry | undefined }[] = [];
    for (const agent of agents()) unread.push({ agent, after: undefined });
    while (unread.length > 0) {
      const more: typeof unread = [];
      for (const { agent, after } of unread) {
        const page = await catalog.due(agent, clock.now(), after, PAGE);
        for (const entry of page) {
          // Most are woken without waiting, and need no promise.
          while (!this.#tryWake(entry)) await this.#room();
          if (this.#isStopped) return;
        }
        if (page.length === PAGE) more.push({ agent, after: page.at(-1) });
      }
      unread = more;
    }
  }

  /** False when it must be tried again when there is room. */
  #tryWake(entry: DueEntry): boolean {
    const { clock, isInMemory, maxBusy, wake } = this.#parts;
    if (this.#isStopped || isInMemory(entry)) return true;
    const pausedUntil = this.#failures.size === 0 ? 0 : (this.#failures.get(keyOf(entry))?.until ?? 0);
    if (pausedUntil > clock.now()) {
      this.wakeBy(pausedUntil);
      return true;
    }
    if (this.#starting.size >= MAX_STARTING || this.#busy.size >= maxBusy) return false;
    const instance = wake(entry);
    if (instance === null) return false;
    this.#starting.add(instance);
    this.#busy.add(instance);
    void instance.started.then(() => {
      if (this.#starting.delete(instance)) this.#onRoom?.();
    });
    return true;
  }

  /** Resolves when something has changed that may have made room. */
  async #room(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onRoom = resolve;
    });
    this.#onRoom = null;
  }

  #countFailure(key: string): void {
    const failures = this.#failures.get(key) ?? { count: 0, until: 0 };
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** failures.count, MAX_PAUSE_MS);
    failures.count += 1;
    failures.until = this.#parts.clock.now() + pause;
    this.#failures.set(key, failures);
  }
}
