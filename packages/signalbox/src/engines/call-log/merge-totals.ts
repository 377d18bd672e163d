/**
 * Merges what commits have added to the totals, and keeps the totals within their bounds.
 *
 * Invariants:
 * 1. No sum is lost: beyond `MAX_VALUES`, the values with the fewest calls are added up as the remainder of their blob.
 * 2. The hours of a day and the day have the same sums: a merge adds the same deltas to both.
 */
import { DAY_MS } from "./day-files.ts";
import { SumTable } from "./sum-table.ts";
import { encodeTotals, TotalsBlob, WIDTH } from "./totals-blob.ts";
import { MORE_KEYS } from "./totals-dimension.ts";

/** Values of a dimension that have totals of their own, in an hour or a day of a gateway. */
export const MAX_VALUES = 10_000;
/** Dimensions of a gateway on a day. Callers choose the keys of metadata. */
export const MAX_DIMENSIONS = 100;
/** Deltas of a day after which they are merged: those of some minutes. A merge takes some ten milliseconds, and so does reading them. */
export const MAX_DELTAS = 1000;

/** Which totals a blob has. */
export interface TotalsPlace {
  readonly gateway: number;
  readonly isDay: boolean;
  /** Start of the hour or day. */
  readonly time: number;
  readonly dimension: string;
}

export interface StoredDelta {
  readonly gateway: number;
  readonly hour: number;
  readonly dimension: string;
  readonly bytes: Uint8Array;
}

export interface PlannedMerge extends TotalsPlace {
  readonly blobs: Uint8Array[];
}

/** Which deltas belong to which totals. `kept` are the dimensions that the days of the deltas have. */
export function planMerge(
  deltas: readonly StoredDelta[],
  kept: readonly Pick<TotalsPlace, "gateway" | "time" | "dimension">[],
): PlannedMerge[] {
  const dimensions = new Map<string, Set<string>>();
  const dimensionsOf = (gateway: number, day: number): Set<string> => {
    const key = `${gateway} ${day}`;
    const known = dimensions.get(key) ?? new Set<string>();
    dimensions.set(key, known);
    return known;
  };
  for (const { gateway, time, dimension } of kept) dimensionsOf(gateway, time).add(dimension);
  const merges = new Map<string, PlannedMerge>();
  const plan = (place: TotalsPlace, bytes: Uint8Array | null): void => {
    const key = `${place.gateway} ${place.isDay} ${place.time} ${place.dimension}`;
    const merge = merges.get(key) ?? { ...place, blobs: [] };
    merges.set(key, merge);
    if (bytes !== null) merge.blobs.push(bytes);
  };
  for (const { gateway, hour, dimension, bytes } of deltas) {
    const day = dayOfHour(hour);
    const known = dimensionsOf(gateway, day);
    if (!known.has(dimension) && known.size >= MAX_DIMENSIONS) {
      plan({ gateway, isDay: true, time: day, dimension: MORE_KEYS }, null);
      continue;
    }
    known.add(dimension);
    plan({ gateway, isDay: false, time: hour, dimension }, bytes);
    plan({ gateway, isDay: true, time: day, dimension }, bytes);
  }
  return [...merges.values()];
}

export function dayOfHour(hour: number): number {
  return Math.floor(hour / DAY_MS) * DAY_MS;
}

/** The sum of some blobs of one dimension. */
export function mergeBlobs(blobs: readonly Uint8Array[]): Uint8Array {
  const sums = new SumTable<string | null>();
  for (const bytes of blobs) {
    const blob = new TotalsBlob(bytes);
    const offsets = Int32Array.from(blob.values, (value) => sums.placeOf(value));
    blob.addTo(sums.table, offsets);
  }
  return encodeBounded(sums.values, sums.table);
}

function encodeBounded(values: readonly (string | null)[], table: Float64Array): Uint8Array {
  // The first sum is the number of calls.
  const callsAt = (place: number) => table[place * WIDTH] ?? 0;
  const named = [...values.keys()].filter((place) => values[place] !== null);
  if (named.length <= MAX_VALUES) return encodeTotals(values, table);
  named.sort((a, b) => callsAt(b) - callsAt(a));
  const own = new Set(named.slice(0, MAX_VALUES));
  const bounded = new SumTable<string | null>();
  for (const [place, value] of values.entries()) {
    bounded.add(own.has(place) ? value : null, table.subarray(place * WIDTH, (place + 1) * WIDTH));
  }
  return encodeTotals(bounded.values, bounded.table);
}
