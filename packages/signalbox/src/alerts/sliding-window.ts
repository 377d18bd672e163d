/** What happened in the last seconds, in slots: counts, sums, and a histogram of durations for percentiles. */
const SLOTS = 30;
/** Seconds, each a quarter above the one before: a percentile is at most that much too large. */
const BOUNDS = Array.from({ length: 60 }, (_, i) => 0.001 * 1.25 ** i);

/** What happened in one slot. */
export interface SlotFigures {
  /** Of the slot, since 1970. */
  readonly number: number;
  readonly count: number;
  readonly failed: number;
  readonly sum: number;
  /** The number of durations in each bucket of the histogram. */
  readonly durations: ArrayLike<number>;
}

interface Slot extends SlotFigures {
  number: number;
  count: number;
  failed: number;
  sum: number;
  readonly durations: Uint32Array;
  /** The count when the slot was stored last. */
  stored: number;
}

export interface Totals {
  readonly count: number;
  readonly failed: number;
  readonly sum: number;
  /** 95th percentile, seconds; null without a duration. */
  readonly p95: number | null;
}

export class SlidingWindow {
  readonly #slotMs: number;
  readonly #slots: Slot[];

  constructor(windowMs: number) {
    this.#slotMs = windowMs / SLOTS;
    this.#slots = Array.from({ length: SLOTS }, () => ({
      number: -1,
      count: 0,
      failed: 0,
      sum: 0,
      durations: new Uint32Array(BOUNDS.length + 1),
      stored: 0,
    }));
  }

  add(
    now: number,
    event: { readonly isFailed: boolean; readonly amount: number; readonly seconds: number | null },
  ): void {
    const number = Math.floor(now / this.#slotMs);
    const slot = this.#slots[number % SLOTS];
    if (slot === undefined) return;
    if (slot.number !== number) {
      slot.number = number;
      slot.count = slot.failed = slot.sum = slot.stored = 0;
      slot.durations.fill(0);
    }
    slot.count += 1;
    if (event.isFailed) slot.failed += 1;
    slot.sum += event.amount;
    if (event.seconds === null) return;
    let at = 0;
    while (at < BOUNDS.length && event.seconds > (BOUNDS[at] ?? Infinity)) at += 1;
    slot.durations[at] = (slot.durations[at] ?? 0) + 1;
  }

  totals(now: number): Totals {
    const { first, last } = this.range(now);
    return sumSlots(this.#slots.filter(({ number }) => number >= first && number <= last));
  }

  /** The numbers of the slots that the window consists of. */
  range(now: number): { readonly first: number; readonly last: number } {
    const last = Math.floor(now / this.#slotMs);
    return { first: last - SLOTS + 1, last };
  }

  /** The slots that have changed since they were stored, and what to call when they are stored. */
  changes(): { readonly slots: readonly SlotFigures[]; stored(): void } {
    const changed = this.#slots.filter(({ count, stored }) => count !== stored);
    const slots = changed.map((slot) => ({ ...slot, durations: Array.from(slot.durations) }));
    return {
      slots,
      stored() {
        for (const [i, slot] of changed.entries())
          if (slot.number === slots[i]?.number) slot.stored = slots[i].count;
      },
    };
  }
}

export function sumSlots(slots: Iterable<Omit<SlotFigures, "number">>): Totals {
  let [count, failed, sum] = [0, 0, 0];
  const durations = Array.from({ length: BOUNDS.length + 1 }, () => 0);
  for (const slot of slots) {
    count += slot.count;
    failed += slot.failed;
    sum += slot.sum;
    for (let i = 0; i < durations.length; i += 1)
      durations[i] = (durations[i] ?? 0) + (slot.durations[i] ?? 0);
  }
  return { count, failed, sum, p95: percentile(durations) };
}

function percentile(durations: readonly number[]): number | null {
  const total = durations.reduce((sum, number) => sum + number, 0);
  if (total === 0) return null;
  let seen = 0;
  const at = durations.findIndex((number) => (seen += number) >= total * 0.95);
  return BOUNDS[at] ?? BOUNDS.at(-1) ?? null;
}
