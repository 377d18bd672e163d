/**
 * Loads instances that have due work and that no event touches: after a restart, and whenever the due time of an instance comes.
 *
 *   waiting (one timer for all) → scanning (pages of due instances, each woken when there is room) → waiting
 *
 * Invariants:
 * 1. Every due instance of a loaded agent is woken, however many there are: a scan ends when the catalog has no more of them. An instance in
 *    memory performs its own work, and is reported here when it leaves memory with work to do.
 * 2. The number of woken instances that are busy is bounded, and so is the number of those that start; accounts share it, agents and accounts take
 *    turns (`DueLanes`), and events from outside find room. If there is no room, the scan continues when an instance becomes idle or leaves memory.
 * 3. Due work of agents that are not loaded is not read. It runs after a start that loads them.
 * 4. An instance that fails repeatedly by itself is woken at increasing intervals and does not delay the others.
 * 5. A due time that was not reported here, for whatever reason, waits for the scan of every minute, and no longer.
 * 6. Wakes are bounded by time (`LoopShare`): however many instances are due at once, other requests wait for a few milliseconds.
 * 7. While more instances wait to be woken, one that has done its work leaves memory: a thousand open databases make opening the next one slower, and closing
 *    one later, to make room, costs the same.
 * 8. In a cluster only the instances of this node are read here; `placement/orphans.ts` finds those whose node is gone.
 * See agents/README.md.
 */
import { SignalboxError } from "@signalbox/protocol";
import { clearTimer, type Clock, setTimer, type Timer } from "../../core/clock.ts";
import type { LoopShare } from "../../core/loop-share.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { SharedPlaces } from "../../core/shared-pool.ts";
import { DueLanes, PAGE, REST_MS } from "./due-lanes.ts";
import { type InstanceRef, keyOf } from "./instance-ref.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AnyInstance } from "./instance.ts";
import type { DueEntry, DueSelection, InstanceCatalog } from "./instance-catalog.ts";
import type { InstanceFailure } from "./leaving.ts";

/** Woken instances that open their databases at the same time; more would only delay other events. */
const MAX_STARTING = 32;
/** Delay after a failed scan. */
const RETRY_MS = 1000;
/** The pause after the first failure of an instance, and the limit; the pause doubles with each further failure. */
const FIRST_PAUSE_MS = 10_000;
const MAX_PAUSE_MS = 10 * 60_000;
/** How often a scan begins that no due time has asked for. */
const RESCAN_MS = 60_000;

export interface WakerParts {
  readonly catalog: Pick<InstanceCatalog, "due" | "nextDueAfter" | "flush">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Each wake is a step of it. */
  readonly share: Pick<LoopShare, "step">;
  /** Kebab-case names of the loaded agents. */
  readonly agents: () => Iterable<string>;
  /** Woken instances that may be busy at once. */
  readonly maxBusy: number;
  readonly isInMemory: (ref: InstanceRef) => boolean;
  /** Loads the instance; null when there is no room in memory. Throws when no instance can be opened: the scan is repeated later. */
  readonly wake: (ref: InstanceRef) => AnyInstance | null;
  /** The woken instance has done its work, and others are to be woken: it leaves memory, unless it is expected to be used soon. */
  readonly putAway: (instance: AnyInstance) => void;
}

/** Where due instances are read. */
export interface DueSource {
  readonly read: (selection: DueSelection, limit: number) => Promise<readonly DueEntry[]>;
  /** Leaves out those of a page that are not to be woken; null ends the scan. */
  readonly select?: (page: readonly DueEntry[]) => Promise<readonly DueEntry[] | null>;
  /** An instance is being loaded. */
  readonly woken?: () => void;
}

interface Failures {
  count: number;
  until: number;
}

export class Waker {
  readonly #parts: WakerParts;
  readonly #starting = new Set<AnyInstance>();
  readonly #busy = new Set<AnyInstance>();
  /** Of those that are busy. */
  readonly #places: SharedPlaces;
  /** Failures of instances with due work, by key. */
  readonly #failures = new Map<string, Failures>();
  #timer: Timer | undefined;
  /** Calls of `wake` that have not ended. */
  #wakes = 0;
  /** The time of the next scan. */
  #wakeAt = Number.POSITIVE_INFINITY;
  #scanning: Promise<void> | null = null;
  #rescans: Repetition | null = null;
  /** Scans that wait for room. */
  readonly #waiting = new Set<() => void>();
  /** How often room may have been made. */
  #rooms = 0;
  #isStopped = false;

  constructor(parts: WakerParts) {
    this.#parts = parts;
    this.#places = new SharedPlaces(parts.maxBusy);
  }

  /** Scans at once, and from then on whenever work is due. */
  start(): void {
    if (this.#isStopped) return;
    this.#rescans ??= repeat(
      RESCAN_MS,
      () => this.start(),
      () => undefined,
    );
    // Also if the next scan is planned for an earlier time: the clock may have been set past it, and its timer does not know.
    this.#wakeAt = Math.min(this.#wakeAt, this.#parts.clock.now());
    if (this.#scanning === null) this.#arm();
  }

  /** An instance that is not in memory has work at that time. */
  wakeBy(at: number): void {
    if (at >= this.#wakeAt || this.#isStopped) return;
    this.#wakeAt = at;
    if (this.#scanning === null) this.#arm();
  }

  /** Wakes all due instances of the source, page by page, as there is room. Resolves when there are no more. */
  async wakeAll({ read, select, woken }: DueSource): Promise<void> {
    const lanes = new DueLanes(this.#parts.agents(), () => performance.now());
    this.#wakes += 1;
    let triedAt = this.#rooms;
    try {
      while (!this.#isStopped) {
        const lane = lanes.next();
        if (lane === null) return;
        if (lane === "blocked") {
          // Room that was made while the lanes were tried was not seen by those before it.
          if (triedAt === this.#rooms) await this.#roomOrRest();
          triedAt = this.#rooms;
          lanes.unblock();
          continue;
        }
        if (lane.pending.length === 0) {
          const page = await read(lane, PAGE);
          const selected = select === undefined ? page : await select(page);
          if (selected === null) return;
          lanes.read(lane, page, selected);
        }
        lanes.handled(lane, await this.#wakeEach(lane.pending, woken));
      }
    } finally {
      this.#wakes -= 1;
    }
  }

  /** Nothing runs or waits in the instance any more. */
  onIdle(instance: AnyInstance): void {
    const wasWoken = this.#busy.size > 0 && this.#endBusy(instance);
    if (this.#failures.size > 0) this.#failures.delete(instance.key);
    if (wasWoken && this.#isWaking) this.#parts.putAway(instance);
    this.#roomMade();
  }

  /** The instance leaves memory; `wakeAt` is when it has work again, null for never. */
  onLeave(instance: AnyInstance, wakeAt: number | null, failure: InstanceFailure | null): void {
    this.#starting.delete(instance);
    this.#endBusy(instance);
    if (wakeAt === null) this.#failures.delete(instance.key);
    else {
      if (failure === "own") this.#countFailure(instance.key);
      this.wakeBy(wakeAt);
    }
    this.#roomMade();
  }

  /** False while a scan is in progress. */
  get isWaiting(): boolean {
    return this.#scanning === null;
  }

  /** Resolves when the scan in progress has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimer(this.#timer);
    await this.#rescans?.stop();
    this.#roomMade();
    await this.#scanning;
  }

  /** Returns how many are being loaded, or need not be: all, or those before the first one for which there is no room. */
  async #wakeEach(entries: readonly DueEntry[], woken: DueSource["woken"]): Promise<number> {
    for (const [i, entry] of entries.entries()) {
      // Those of which nothing is to be done cost no promise.
      if (this.#isLeftAlone(entry)) continue;
      if (!this.#hasRoom(entry)) return i;
      await this.#parts.share.step(entry.account);
      // Another scan, or a stop, may have come before.
      if (this.#isLeftAlone(entry)) continue;
      if (!this.#hasRoom(entry) || !this.#load(entry)) return i;
      woken?.();
    }
    return entries.length;
  }

  #arm(): void {
    clearTimer(this.#timer);
    if (this.#isStopped || this.#wakeAt === Number.POSITIVE_INFINITY) return;
    const scan = () => {
      this.#scanning = this.#scan().finally(() => {
        this.#scanning = null;
        this.#arm();
      });
    };
    const { clock } = this.#parts;
    this.#timer = setTimer(clock, scan, this.#wakeAt - clock.now());
  }

  async #scan(): Promise<void> {
    const { catalog, clock, logger } = this.#parts;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    try {
      await catalog.flush();
      const scannedUntil = clock.now();
      await this.wakeAll({ read: (selection, limit) => catalog.due(selection, clock.now(), limit) });
      for (const agent of this.#parts.agents()) {
        const next = await catalog.nextDueAfter(agent, scannedUntil);
        if (next !== null) this.wakeBy(next);
      }
    } catch (error) {
      // The store itself reports that storage is unavailable.
      if (!(error instanceof SignalboxError && error.id === "storage_unavailable"))
        logger.warn({ err: error }, "waking instances with due work failed; retrying");
      this.wakeBy(clock.now() + RETRY_MS);
    }
  }

  /** True for an instance that is not woken now: it is in memory, or has failed too recently. */
  #isLeftAlone(entry: DueEntry): boolean {
    if (this.#isStopped || this.#parts.isInMemory(entry)) return true;
    const pausedUntil = this.#failures.size === 0 ? 0 : (this.#failures.get(keyOf(entry))?.until ?? 0);
    if (pausedUntil <= this.#parts.clock.now()) return false;
    this.wakeBy(pausedUntil);
    return true;
  }

  /** Instances are being looked for, or wait until there is room. */
  get #isWaking(): boolean {
    return this.#scanning !== null || this.#wakes > 0;
  }

  #hasRoom({ account }: DueEntry): boolean {
    return this.#starting.size < MAX_STARTING && this.#places.shareOf(account).hasRoom;
  }

  #endBusy(instance: AnyInstance): boolean {
    const wasBusy = this.#busy.delete(instance);
    if (wasBusy) this.#places.shareOf(instance.ref.account).release();
    return wasBusy;
  }

  /** Returns false when there is no room in memory. */
  #load(entry: DueEntry): boolean {
    const instance = this.#parts.wake(entry);
    if (instance === null) return false;
    this.#starting.add(instance);
    this.#busy.add(instance);
    this.#places.shareOf(entry.account).take();
    void instance.started.then(() => {
      if (this.#starting.delete(instance)) this.#roomMade();
    });
    return true;
  }

  /** Resolves after a change that may have made room, or after the time in which others may have got work. */
  async #roomOrRest(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const timer = setTimer(this.#parts.clock, resolve, REST_MS);
    await promise;
    clearTimer(timer);
    this.#waiting.delete(resolve);
  }

  #roomMade(): void {
    this.#rooms += 1;
    for (const resolve of this.#waiting) resolve();
  }

  #countFailure(key: string): void {
    const failures = this.#failures.get(key) ?? { count: 0, until: 0 };
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** failures.count, MAX_PAUSE_MS);
    failures.count += 1;
    failures.until = this.#parts.clock.now() + pause;
    this.#failures.set(key, failures);
  }
}
