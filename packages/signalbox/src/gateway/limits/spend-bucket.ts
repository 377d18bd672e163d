/**
 * One bucket of a spend rule: the amount spent in its window, and the amount reserved by running calls.
 *
 * A fixed window is one slot of the window's length, aligned to the clock. A sliding window has slots of a sixtieth of its length; a slot
 * counts entirely while any part of it is inside the window, so the limit is never exceeded, at the cost of being stricter.
 * Amounts are integers in millionths of a dollar, so sums are exact.
 *
 * Windows follow the system clock, because they outlive the process. If that clock was ahead and is corrected, amounts in future slots
 * count from now on for one window.
 */
const SLIDING_SLOTS = 60;

export class SpendBucket {
  readonly #windowMs: number;
  readonly slotMs: number;
  readonly #slots = new Map<number, number>();
  #reserved = 0;
  /** Running calls, including those that reserved nothing because their price is unknown. */
  #holders = 0;

  constructor(windowMs: number, technique: "fixed" | "sliding") {
    this.#windowMs = windowMs;
    this.slotMs = technique === "fixed" ? windowMs : Math.max(1, Math.ceil(windowMs / SLIDING_SLOTS));
  }

  get reserved(): number {
    return this.#reserved;
  }

  /** True when nothing is spent in the window and no call is running: the bucket equals a new one. */
  isEmpty(now: number): boolean {
    return this.#holders === 0 && this.spent(now) === 0;
  }

  slotOf(time: number): number {
    return Math.floor(time / this.slotMs) * this.slotMs;
  }

  spent(now: number): number {
    const current = this.slotOf(now);
    let sum = 0;
    let ahead = 0;
    for (const [slot, amount] of this.#slots) {
      if (slot <= current && now < this.endOf(slot)) sum += amount;
      else {
        this.#slots.delete(slot);
        if (slot > current) ahead += amount;
      }
    }
    if (ahead > 0) this.add(current, ahead);
    return sum + ahead;
  }

  reserve(amount: number): void {
    this.#holders += 1;
    this.#reserved += amount;
  }

  release(amount: number): void {
    this.#holders -= 1;
    this.#reserved -= amount;
  }

  add(slot: number, amount: number): void {
    this.#slots.set(slot, (this.#slots.get(slot) ?? 0) + amount);
  }

  /** When the amount of a slot stops counting. */
  endOf(slot: number): number {
    return this.slotMs === this.#windowMs ? slot + this.#windowMs : slot + this.slotMs + this.#windowMs;
  }

  /** Milliseconds until at most `allowed` of the present amounts counts; 0 when that is already the case. `allowed` is not negative. */
  msUntilSpentIs(allowed: number, now: number): number {
    let left = this.spent(now);
    let waitMs = 0;
    const oldestFirst = [...this.#slots].sort(([a], [b]) => a - b);
    for (const [slot, amount] of oldestFirst) {
      if (left <= allowed) break;
      left -= amount;
      waitMs = this.endOf(slot) - now;
    }
    return waitMs;
  }
}
