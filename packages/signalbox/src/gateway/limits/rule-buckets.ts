/**
 * The buckets of one rule: a single one, or one for each value of the metadata that the rule partitions by.
 *
 * Callers choose the values, so the number of buckets is bounded: empty buckets are dropped, and once `MAX_BUCKETS` are in use, all
 * further values share one bucket with the same limit. Inventing values therefore raises no limit; it can only make unrelated callers
 * share one.
 */
import { hash } from "node:crypto";
import { AmountBucket } from "./amount-bucket.ts";
import type { LimitOwner, LimitRule } from "./limit-rule.ts";
import type { Window } from "./window.ts";

/** Per rule. A bucket takes about 300 bytes, and one database row for each slot with an amount. */
const MAX_BUCKETS = 10_000;
/** A sweep takes about a millisecond, too long for every call with a new value. */
const SWEEP_PAUSE_MS = 1000;
/** Longer values are hashed, so that the size of a row is bounded. */
const MAX_VALUE_LENGTH = 256;
/** Cannot be the name of a value: those are JSON arrays. */
const OTHERS = '"others"';

/** A bucket with its name in the database. */
export class NamedBucket extends AmountBucket {
  readonly owner: LimitOwner;
  readonly name: string;
  /** Amounts of money are stored, all others live as long as the process. */
  readonly isDurable: boolean;
  /** The owner was deleted: amounts settled from now on are not written. */
  isForgotten = false;
  /** Another bucket has taken its place. */
  isDropped = false;
  /** The store's entry of amounts that are not written yet; null when there is none. */
  unwritten: { readonly slot: number; amount: number } | null = null;
  /** Its number in the current journal file; 0 when the file does not have it. */
  journalNumber = 0;

  constructor(window: Window, owner: LimitOwner, name: string, isDurable: boolean) {
    super(window);
    this.owner = owner;
    this.name = name;
    this.isDurable = isDurable;
  }
}

export type MoveListener = (
  from: NamedBucket,
  fromSlot: number,
  to: NamedBucket,
  toSlot: number,
  amount: number,
) => void;

export class RuleBuckets {
  readonly #id: string;
  readonly #open: (name: string) => NamedBucket;
  readonly #now: () => number;
  readonly #buckets = new Map<string, NamedBucket>();
  readonly window: Window;
  #sweptAt = Number.NEGATIVE_INFINITY;

  /** `open` returns a bucket with what the database has of it; `stored` are the names of buckets that it has. */
  constructor(
    { id, window }: Pick<LimitRule, "id" | "window">,
    stored: readonly string[],
    open: (name: string) => NamedBucket,
    now: () => number,
  ) {
    this.#id = id;
    this.window = window;
    this.#open = open;
    this.#now = now;
    // All at once: a new value must not find room that stored ones take.
    for (const name of stored) this.named(name);
  }

  first(count: number): NamedBucket[] {
    return [...this.#buckets.values()].slice(0, count);
  }

  find(partition: string | null): NamedBucket {
    const name = partition === null ? this.#id : `${this.#id} ${shorten(partition)}`;
    const known = this.#buckets.get(name);
    if (known !== undefined && !known.isDropped) return known;
    return this.named(this.#isFull() ? `${this.#id} ${OTHERS}` : name);
  }

  /** The bucket with this name, a new one if there is none. */
  named(name: string): NamedBucket {
    const known = this.#buckets.get(name);
    if (known !== undefined && !known.isDropped) return known;
    const bucket = this.#open(name);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  /** The window of the rule has changed: amounts that count in the new one are kept. `onMoved` is called for each. */
  moveTo(next: RuleBuckets, onMoved: MoveListener): void {
    const now = this.#now();
    for (const bucket of this.#buckets.values()) {
      bucket.used(now);
      const moved = new NamedBucket(next.window, bucket.owner, bucket.name, bucket.isDurable);
      for (const [slot, amount] of bucket.slots) {
        const at = next.window.slotOf(slot);
        if (now >= next.window.endOf(at)) continue;
        moved.add(at, amount);
        if (bucket.isDurable) onMoved(bucket, slot, moved, at, amount);
      }
      next.#buckets.set(bucket.name, moved);
    }
  }

  forget(): void {
    for (const bucket of this.#buckets.values()) bucket.isForgotten = true;
  }

  #isFull(): boolean {
    if (this.#buckets.size < MAX_BUCKETS) return false;
    const now = this.#now();
    if (Math.abs(now - this.#sweptAt) >= SWEEP_PAUSE_MS) {
      this.#sweptAt = now;
      for (const [name, bucket] of this.#buckets) if (bucket.isEmpty(now)) this.#buckets.delete(name);
    }
    return this.#buckets.size >= MAX_BUCKETS;
  }
}

function shorten(partition: string): string {
  return partition.length <= MAX_VALUE_LENGTH ? partition : `sha256:${hash("sha256", partition)}`;
}
