/**
 * The catalog's entry of an instance that is in memory: that the instance exists, and when it has work to do.
 *
 * Invariants:
 * 1. When `withSync` resolves, every earlier change of the entry is durable.
 * 2. The due time in the catalog is never later than that of the work that is stored: it is written before the sync that makes the work
 *    durable. An earlier time only causes a needless wake. The exception is an instance whose storage has failed: it is woken after a pause,
 *    because it would fail again at once.
 * 3. A later time, or none, is written when the database has closed with everything that was committed. After a failure what is stored may be older than
 *    what the instance had in memory: then the entry is due, and the instance looks for itself when it is woken.
 * 4. In a cluster, what the catalog had before this node took the instance is not relied on: its former owner may have written after it was read.
 */
import type { Clock } from "../../core/clock.ts";
import type { InstanceRef } from "./instance-ref.ts";
import { STORAGE_PAUSE_MS } from "../work/work-pump.ts";
import type { InstanceCatalog } from "./instance-catalog.ts";
import type { InstanceFailure } from "./leaving.ts";
import type { InstanceFigures } from "./instance-figures.ts";
import { NO_WORK } from "./problem-index.ts";

/** Storage that all instances share is usually back soon, and must not delay the work of all of them. */
const PAUSES_MS = { storage: 1000, own: STORAGE_PAUSE_MS } as const;

export class CatalogPresence {
  /** The numbers of the instance's work. */
  readonly figures: InstanceFigures;
  readonly #catalog: InstanceCatalog;
  readonly #ref: InstanceRef;
  readonly #clock: Clock;
  /** A write that the next sync has to wait for. */
  #registering: Promise<void> | null = null;
  #settingDue: Promise<void> | null = null;
  /** The due time in the catalog, including writes in progress; undefined if another node may have written one. */
  #writtenDueAt: number | null | undefined = null;
  #epoch = 0;
  /** Undefined until the catalog has been read. */
  #nextDueAt: number | null | undefined;
  /** The due time that the instance has left; undefined before that, and if it is not known. */
  #leftDueAt: number | null | undefined;
  #isNew = false;

  constructor(catalog: InstanceCatalog, ref: InstanceRef, clock: Clock, figures: InstanceFigures) {
    this.figures = figures;
    this.#catalog = catalog;
    this.#ref = ref;
    this.#clock = clock;
  }

  /** Reads the entry; every other method but `leave` requires it. */
  async load(): Promise<void> {
    const entry = await this.#catalog.find(this.#ref);
    this.#isNew = entry === undefined;
    this.#writtenDueAt = entry?.nextDueAt ?? null;
    this.#nextDueAt = this.#writtenDueAt;
    this.#epoch = entry?.epoch ?? 0;
    this.figures.known(entry?.figures ?? NO_WORK);
  }

  /** True when the catalog had an entry. */
  get isKnown(): boolean {
    return !this.#isNew;
  }

  /** The database is open. */
  opened(at: number, isDatabaseNew: boolean): void {
    const epoch = this.#catalog.epochOf(this.#ref);
    if (epoch !== this.#epoch) {
      this.#writtenDueAt = undefined;
      this.#nextDueAt = undefined;
    }
    // An entry of a new database in a cluster belongs to a predecessor that another node has destroyed, and is about to disappear.
    if (this.#isNew || (isDatabaseNew && epoch > 0))
      this.#registering = observed(this.#catalog.register(this.#ref, at));
    if (isDatabaseNew) this.#nextDueAt = null;
  }

  /** The time of the next due work has changed; null when there is none. */
  setDue(at: number | null): void {
    this.#nextDueAt = at;
    this.figures.changed();
    const written = this.#writtenDueAt ?? null;
    if (at === null || (written !== null && written <= at)) return;
    // Work that is queued later is due at once. "Now" therefore keeps the entry valid until the instance leaves memory.
    const dueAt = Math.min(at, this.#clock.now());
    this.#writtenDueAt = dueAt;
    const earlier = this.#settingDue;
    const write = observed(this.#catalog.setDue(this.#ref, dueAt));
    const setting = earlier === null ? write : observed(Promise.all([earlier, write]).then(() => undefined));
    this.#settingDue = setting;
    const ended = () => {
      if (this.#settingDue === setting) this.#settingDue = null;
    };
    // After a failure it stays: nothing that follows may become durable.
    setting.then(ended, () => undefined);
  }

  /** When the instance has work next; null for never, undefined if that is not known. */
  get nextDueAt(): number | null | undefined {
    return this.#nextDueAt;
  }

  /** The write of a due time, until it has succeeded; null when the catalog has it. */
  get settingDue(): Promise<void> | null {
    return this.#settingDue;
  }

  /** Runs the database's sync and waits for the changes of the entry, in the order of invariant 2. */
  withSync(sync: () => Promise<void>): Promise<void> {
    const registering = this.#registering;
    const { pending } = this.figures;
    const settingDue =
      pending === null ? this.#settingDue : Promise.all([pending, this.#settingDue]).then(() => undefined);
    if (registering === null && settingDue === null) return sync();
    this.#registering = null;
    const synced = settingDue === null ? sync() : settingDue.then(sync);
    return registering === null ? synced : Promise.all([synced, registering]).then(() => undefined);
  }

  /**
   * The instance leaves memory. Returns when it must be woken at the latest; null for never. If the instance failed before it could read
   * the catalog, the due time of the entry does not change. `isAwaited`: after a failure it is woken in any case.
   */
  leave(lastActiveAt: number, failure: InstanceFailure | null, isAwaited = false): number | null {
    this.#catalog.touch(this.#ref, lastActiveAt);
    this.figures.leave();
    const earliest = failure === null ? 0 : this.#clock.now() + PAUSES_MS[failure];
    if (this.#nextDueAt === undefined) return earliest;
    const stored =
      failure === null ? this.#nextDueAt : earlierOf(this.#writtenDueAt ?? null, this.#nextDueAt);
    const dueAt = failure !== null && isAwaited ? earliest : stored;
    this.#leftDueAt = dueAt === null ? null : Math.max(dueAt, earliest);
    return this.#leftDueAt;
  }

  /** The database has closed, and what was committed is durable. (If another node has taken the instance meanwhile, the catalog ignores this.) */
  closed(): void {
    if (this.#leftDueAt !== undefined) this.#catalog.setDueLazily(this.#ref, this.#leftDueAt);
  }
}

function earlierOf(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

function observed(write: Promise<void>): Promise<void> {
  // The next sync receives a rejection; until then it must not count as unhandled.
  write.catch(() => undefined);
  return write;
}
