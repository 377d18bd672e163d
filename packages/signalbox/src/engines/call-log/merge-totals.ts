/**
 * Merges what commits have added to the totals, and keeps the totals within their bounds.
 *
 * Invariants:
 * 1. No sum is lost: beyond `MAX_VALUES`, the values with the fewest calls are added up as the remainder of their blob.
 * 2. The hours of a day and the day have the same sums: a merge adds the same deltas to both.
 */
import { DAY_MS } from "./day-files.ts";
import { SUM_COLUMNS } from "./day-schema.ts";
import { encodeTotals, TotalsBlob } from "./totals-blob.ts";
import { MORE_KEYS } from "./totals-dimension.ts";

/** Values of a dimension that have totals of their own, in an hour or a day of a gateway. */
export const MAX_VALUES = 10_000;
/** Dimensions of a gateway on a day. Callers choose the keys of metadata. */
export const MAX_DIMENSIONS = 100;
/** Deltas of a day after which they are merged: about a minute of traffic. A merge takes some ten milliseconds. */
export const MAX_DELTAS = 256;

const WIDTH = SUM_COLUMNS.length;

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
  const parts = blobs.map((bytes) => new TotalsBlob(bytes));
  const places = new Map<string | null, number>();
  for (const { values } of parts) {
    for (const value of values) if (!places.has(value)) places.set(value, places.size);
  }
  const table = new Float64Array(places.size * WIDTH);
  for (const part of parts) {
    part.addTo(
      table,
      Int32Array.from(part.values, (value) => (places.get(value) ?? 0) * WIDTH),
    );
  }
  return encodeBounded([...places.keys()], table);
}

function encodeBounded(values: readonly (string | null)[], table: Float64Array): Uint8Array {
  const sumsAt = (place: number) => table.subarray(place * WIDTH, (place + 1) * WIDTH);
  const named = values.flatMap((value, place) => (value === null ? [] : [{ value, place }]));
  // The first sum is the number of calls.
  const ranked =
    named.length > MAX_VALUES
      ? named.sort((a, b) => (table[b.place * WIDTH] ?? 0) - (table[a.place * WIDTH] ?? 0))
      : named;
  const own = ranked.slice(0, MAX_VALUES);
  const others = [
    ...ranked.slice(MAX_VALUES).map(({ place }) => place),
    ...(values.includes(null) ? [values.indexOf(null)] : []),
  ];
  if (others.length === 0) {
    return encodeTotals(
      own.map(({ value }) => value),
      own.map(({ place }) => sumsAt(place)),
    );
  }
  const remainder = new Float64Array(WIDTH);
  for (const place of others) {
    for (const [i, sum] of sumsAt(place).entries()) remainder[i] = (remainder[i] ?? 0) + sum;
  }
  return encodeTotals(
    [...own.map(({ value }) => value), null],
    [...own.map(({ place }) => sumsAt(place)), remainder],
  );
}
