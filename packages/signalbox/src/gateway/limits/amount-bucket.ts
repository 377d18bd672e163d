/**
 * One bucket of a limit: the amount used in its window, and the amount reserved by running calls. Amounts are integers (millionths of a
 * dollar, tokens, requests), so sums are exact.
 *
 * Windows of money follow the system clock, because they outlive the process. If that clock was ahead and is corrected, amounts in future
 * slots count from now on for one window.
 */
import type { Window } from "./window.ts";

/** What a call has reserved, and what of it the call is expected to use. */
export interface ReservedAmount {
  readonly amount: number;
  readonly expected: number;
}

export class AmountBucket {
  #window: Window;
  readonly #slots = new Map<number, number>();
  /** What counts in the slot `#sumSlot` until the time `#sumUntil`, when an earlier slot ends. A call asks several times. */
  #sum = 0;
  #sumSlot = Number.NaN;
  #sumUntil = 0;
  #reserved = 0;
  /** Running calls, including those that reserved nothing. */
  #holders = 0;

  constructor(window: Window) {
    this.#window = window;
  }

  get window(): Window {
    return this.#window;
  }

  set window(window: Window) {
    this.#window = window;
    this.#sumSlot = Number.NaN;
  }

  get reserved(): number {
    return this.#reserved;
  }

  /** True when nothing is used in the window and no call is running: the bucket equals a new one. */
  isEmpty(now: number): boolean {
    return this.#holders === 0 && this.used(now) === 0;
  }

  used(now: number): number {
    const current = this.window.slotOf(now);
    if (current === this.#sumSlot && now < this.#sumUntil) return this.#sum;
    let sum = 0;
    let ahead = 0;
    let until = Number.POSITIVE_INFINITY;
    for (const [slot, amount] of this.#slots) {
      const end = this.window.endOf(slot);
      if (slot <= current && now < end) {
        sum += amount;
        until = Math.min(until, end);
      } else {
        this.#slots.delete(slot);
        if (slot > current) ahead += amount;
      }
    }
    if (ahead > 0) this.#slots.set(current, (this.#slots.get(current) ?? 0) + ahead);
    this.#sum = sum + ahead;
    this.#sumSlot = current;
    this.#sumUntil = until;
    return this.#sum;
  }

  reserve(amount: number): void {
    this.#holders += 1;
    this.#reserved += amount;
  }

  release({ amount }: ReservedAmount): void {
    this.#holders -= 1;
    this.#reserved -= amount;
  }

  add(slot: number, amount: number): void {
    this.#slots.set(slot, (this.#slots.get(slot) ?? 0) + amount);
    if (slot === this.#sumSlot) this.#sum += amount;
    else this.#sumSlot = Number.NaN;
  }

  /** Replaces the amounts, which were counted elsewhere. */
  setSlots(slots: Iterable<readonly [slot: number, amount: number]>): void {
    this.#slots.clear();
    for (const [slot, amount] of slots) this.#slots.set(slot, amount);
    this.#sumSlot = Number.NaN;
  }

  get slots(): Iterable<readonly [slot: number, amount: number]> {
    return this.#slots;
  }

  /** Milliseconds until at most `allowed` of the current amounts counts; 0 when that is already the case. `allowed` is not negative. */
  msUntilUsedIs(allowed: number, now: number): number {
    let left = this.used(now);
    let waitMs = 0;
    const oldestFirst = [...this.#slots].sort(([a], [b]) => a - b);
    for (const [slot, amount] of oldestFirst) {
      if (left <= allowed) break;
      left -= amount;
      const end = this.window.endOf(slot);
      waitMs = end === Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : end - now;
    }
    return waitMs;
  }

  /** When the next amount comes back: the end of the oldest slot, or of the current one; null when nothing ever does. */
  resetAt(now: number): number | null {
    let oldest = this.window.slotOf(now);
    for (const [slot, amount] of this.#slots)
      if (amount > 0 && slot < oldest && now < this.window.endOf(slot)) oldest = slot;
    const end = this.window.endOf(oldest);
    return end === Number.MAX_SAFE_INTEGER ? null : end;
  }
}
