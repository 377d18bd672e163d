/**
 * Money of one spend rule's bucket: what was spent in its window, and what running calls have reserved.
 *
 * A fixed window is one slot of the window's length, aligned to the clock. A sliding one is made of slots of a sixtieth of it; a slot
 * counts whole as long as any part of it is inside the window, so the limit errs on the strict side, never the loose one.
 * Amounts are whole millionths of a dollar: sums of many small calls stay exact.
 *
 * Windows follow the system's clock, because they outlive the process. If that clock ran ahead and was set right, what was spent in
 * the meantime lies in slots of the future; it counts from now on and for one window, not until that future is over.
 */
const SLIDING_SLOTS = 60;

export class SpendBucket {
  readonly #windowMs: number;
  readonly slotMs: number;
  readonly #slots = new Map<number, number>();
  #reserved = 0;
  /** Running calls; also those that could reserve nothing, because their price is unknown until it is settled. */
  #holders = 0;

  constructor(windowMs: number, technique: "fixed" | "sliding") {
    this.#windowMs = windowMs;
    this.slotMs = technique === "fixed" ? windowMs : Math.max(1, Math.ceil(windowMs / SLIDING_SLOTS));
  }

  get reserved(): number {
    return this.#reserved;
  }

  /** Nothing spent in the window and no call running: the bucket says nothing that a new one would not. */
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

  /** When the amounts of a slot stop counting. */
  endOf(slot: number): number {
    return this.slotMs === this.#windowMs ? slot + this.#windowMs : slot + this.slotMs + this.#windowMs;
  }

  /** Milliseconds until no more than `allowed` of what is spent now counts; 0 when that is so already. `allowed` is not negative. */
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
