/**
 * Money of one spend rule's bucket: what was spent in its window, and what running calls have reserved.
 *
 * A fixed window is one slot of the window's length, aligned to the clock. A sliding one is made of slots of a sixtieth of it; a slot
 * counts whole as long as any part of it is inside the window, so the limit errs on the strict side, never the loose one.
 * Amounts are whole millionths of a dollar: sums of many small calls stay exact.
 */
const SLIDING_SLOTS = 60;

export class SpendBucket {
  readonly #windowMs: number;
  readonly slotMs: number;
  readonly #slots = new Map<number, number>();
  #reserved = 0;

  constructor(windowMs: number, technique: "fixed" | "sliding") {
    this.#windowMs = windowMs;
    this.slotMs = technique === "fixed" ? windowMs : Math.max(1, Math.ceil(windowMs / SLIDING_SLOTS));
  }

  get reserved(): number {
    return this.#reserved;
  }

  slotOf(time: number): number {
    return Math.floor(time / this.slotMs) * this.slotMs;
  }

  spent(now: number): number {
    let sum = 0;
    for (const [slot, amount] of this.#slots) {
      if (this.#isPast(slot, now)) this.#slots.delete(slot);
      else sum += amount;
    }
    return sum;
  }

  reserve(amount: number): void {
    this.#reserved += amount;
  }

  release(amount: number): void {
    this.#reserved -= amount;
  }

  add(slot: number, amount: number): void {
    this.#slots.set(slot, (this.#slots.get(slot) ?? 0) + amount);
  }

  /** Milliseconds until the oldest amount that counts falls out of the window. */
  msUntilRelief(now: number): number {
    const oldest = Math.min(...this.#slots.keys());
    if (!Number.isFinite(oldest)) return 1000;
    const end =
      this.slotMs === this.#windowMs ? oldest + this.#windowMs : oldest + this.slotMs + this.#windowMs;
    return Math.max(1, end - now);
  }

  #isPast(slot: number, now: number): boolean {
    return this.slotMs === this.#windowMs
      ? slot < this.slotOf(now)
      : slot + this.slotMs <= now - this.#windowMs;
  }
}
