/** Whether a figure grows over a long run. */

/** What a figure may differ between the first and the last quarter of the readings: garbage collection and checkpoints come and go. */
const TOLERANCE = 0.1;

export interface Trend {
  readonly first: number;
  readonly last: number;
  /** By how much the last quarter is above the first, as a share; negative if below. */
  readonly growth: number;
  readonly isFlat: boolean;
}

/**
 * Compares the medians of the first and the last quarter. `least` is the smallest difference that counts, for figures near zero. Null with fewer than four
 * readings.
 */
export function trendOf(readings: readonly number[], least = 0): Trend | null {
  const quarter = Math.floor(readings.length / 4);
  if (quarter === 0) return null;
  const first = middleOf(readings.slice(0, quarter));
  const last = middleOf(readings.slice(-quarter));
  const growth = first === 0 ? (last === 0 ? 0 : Infinity) : (last - first) / first;
  return { first, last, growth, isFlat: growth <= TOLERANCE || last - first <= least };
}

function middleOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
