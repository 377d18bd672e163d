/**
 * What the catalog knows of an instance that is in memory: that it is there, and when it has work to do.
 *
 * Invariants:
 * 1. `takePending` covers every write whose failure would make an acknowledgement a lie.
 * 2. The catalog names no later time than the work that is due; that it names an earlier one costs a wake for nothing. Only an instance whose
 *    storage has failed is woken later, after a pause: woken at once, it would fail over and over.
 */
import type { Clock } from "../../core/clock.ts";
import type { InstanceRef } from "./instance-ref.ts";
import { STORAGE_PAUSE_MS } from "../work/work-pump.ts";
import type { InstanceCatalog } from "./instance-catalog.ts";

export class CatalogPresence {
  readonly #catalog: InstanceCatalog;
  readonly #ref: InstanceRef;
  readonly #clock: Clock;
  #pending: Promise<void> | null = null;
  /** What the catalog says, or will say before anything is acknowledged. */
  #indexedDueAt: number | null = null;
  /** Undefined until it is known. */
  #nextDueAt: number | null | undefined;
  #isNew = false;

  constructor(catalog: InstanceCatalog, ref: InstanceRef, clock: Clock) {
    this.#catalog = catalog;
    this.#ref = ref;
    this.#clock = clock;
  }

  /** Must have resolved before anything else is asked. */
  async look(): Promise<void> {
    const entry = await this.#catalog.find(this.#ref);
    this.#isNew = entry === undefined;
    this.#indexedDueAt = entry?.nextDueAt ?? null;
    this.#nextDueAt = this.#indexedDueAt;
  }

  /** The catalog has it. */
  get isKnown(): boolean {
    return !this.#isNew;
  }

  /** The database is open. */
  opened(at: number, isDatabaseNew: boolean): void {
    if (this.#isNew) this.#await(this.#catalog.register(this.#ref, at));
    if (isDatabaseNew) this.#nextDueAt = null;
  }

  /** Work is due then, or there is none. */
  setDue(at: number | null): void {
    this.#nextDueAt = at;
    if (at === null || (this.#indexedDueAt !== null && this.#indexedDueAt <= at)) return;
    // Work put in the queue from now on is due at once, so "now" keeps the entry right until the instance leaves memory.
    const dueAt = Math.min(at, this.#clock.now());
    this.#indexedDueAt = dueAt;
    this.#await(this.#catalog.setDue(this.#ref, dueAt));
  }

  /** The writes that the next sync, and with it every acknowledgement from now on, must wait for; null when there are none. */
  takePending(): Promise<void> | null {
    const pending = this.#pending;
    this.#pending = null;
    return pending;
  }

  /**
   * The instance leaves memory; returns when it must be woken at the latest, null for never. For one that has failed before it could even ask
   * the catalog, what that says stays.
   */
  leave(lastActiveAt: number, hasFailed: boolean): number | null {
    this.#catalog.touch(this.#ref, lastActiveAt);
    const earliest = hasFailed ? this.#clock.now() + STORAGE_PAUSE_MS : 0;
    if (this.#nextDueAt === undefined) return earliest;
    const wakeAt = this.#nextDueAt === null ? null : Math.max(this.#nextDueAt, earliest);
    this.#catalog.setDueLazily(this.#ref, wakeAt);
    return wakeAt;
  }

  #await(write: Promise<void>): void {
    // Whoever syncs next learns of a failure; until then nobody may be listening.
    write.catch(() => undefined);
    const before = this.#pending;
    this.#pending = before === null ? write : Promise.all([before, write]).then(() => undefined);
    // As above.
    this.#pending.catch(() => undefined);
  }
}
