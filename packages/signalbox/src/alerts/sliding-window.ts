/** What happened in the last seconds, in slots: counts, sums, and a histogram of durations for percentiles. */
const SLOTS = 30;
/** Seconds, each a quarter above the one before: a percentile is at most that much too large. */
const BOUNDS = Array.from({ length: 60 }, (_, i) => 0.001 * 1.25 ** i);

interface Slot {
  number: number;
  count: number;
  failed: number;
  sum: number;
  readonly durations: Uint32Array;
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
      slot.count = slot.failed = slot.sum = 0;
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
    const newest = Math.floor(now / this.#slotMs);
    let [count, failed, sum] = [0, 0, 0];
    const durations = Array.from({ length: BOUNDS.length + 1 }, () => 0);
    for (const slot of this.#slots) {
      if (slot.number <= newest - SLOTS || slot.number > newest) continue;
      count += slot.count;
      failed += slot.failed;
      sum += slot.sum;
      slot.durations.forEach((number, i) => (durations[i] = (durations[i] ?? 0) + number));
    }
    return { count, failed, sum, p95: percentile(durations) };
  }
}

function percentile(durations: readonly number[]): number | null {
  const total = durations.reduce((sum, number) => sum + number, 0);
  if (total === 0) return null;
  let seen = 0;
  const at = durations.findIndex((number) => (seen += number) >= total * 0.95);
  return BOUNDS[at] ?? BOUNDS.at(-1) ?? null;
}
