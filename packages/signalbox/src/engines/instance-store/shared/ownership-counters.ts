/** Counters of the engine since the start. */
import type { OwnershipFigures } from "./ownership.ts";

export type OwnershipCounters = { -readonly [Key in keyof OwnershipFigures]: number };

export function createCounters(): OwnershipCounters {
  return {
    appends: 0,
    records: 0,
    bytes: 0,
    claims: 0,
    takeOvers: 0,
    refusals: 0,
    unknownOutcomes: 0,
    restores: 0,
    cacheHits: 0,
    compactions: 0,
    lostRecords: 0,
  };
}
