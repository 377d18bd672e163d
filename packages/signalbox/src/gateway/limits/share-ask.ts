/** Describes a bucket for a statement: its window at this time, and its limit. */
import type { ShareAsk } from "./share-table.ts";
import type { SharedBucket } from "./shared-bucket.ts";

export type MutableAsk = { -readonly [Name in keyof ShareAsk]: ShareAsk[Name] };

/** Up to this part of a limit nodes take amounts ahead. */
const SOFT = 0.8;
/** A slot further in the future comes from a wrong clock. */
const AHEAD_MS = 10_000;
/** A row of parallel calls has no window; it is removed when it was not used for this time. */
const PARALLEL_ROW_MS = 3_600_000;

/** Without amounts. */
export function emptyAsk(bucket: SharedBucket, seq: number, now: number): MutableAsk {
  const { window, limit, top } = bucket;
  const slot = window.slotOf(now);
  return {
    id: bucket.row ?? 0,
    seq,
    window_key: window.key,
    slot,
    oldest: window.oldestAt(now),
    ahead: window.slotOf(now + AHEAD_MS),
    ends: endOfRow(bucket, slot, now),
    lim: limit,
    top,
    soft: Math.floor(limit * SOFT),
    charge: 0,
    held: 0,
    expected: 0,
    keep: 0,
    need: 0,
    likely: 0,
    alone: 0,
    single: false,
    forced: 0,
    prefer: 0,
  };
}

/** When the row can be removed, unless it is used again. */
export function endOfRow({ kind, window }: SharedBucket, slot: number, now: number): number {
  return kind === "parallel" ? now + PARALLEL_ROW_MS : window.endOf(slot);
}
