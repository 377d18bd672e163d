/**
 * The buckets of one spend rule: a single one, or one for each value of the metadata the rule partitions by.
 *
 * Callers choose those values, so their number is bounded: buckets in which nothing is spent and no call runs are dropped, and once
 * `MAX_BUCKETS` are in use, all further values share one bucket. That one has the same limit, so making up values buys nobody money
 * that was not there; it can only make strangers share.
 */
import { hash } from "node:crypto";
import type { SpendRule } from "../settings/gateway-settings.ts";
import { SpendBucket } from "./spend-bucket.ts";

/** Of one rule. Each takes some 300 bytes, and a row in the database for each slot it has spent in. */
const MAX_BUCKETS = 10_000;
/** A look at all of them takes about a millisecond: not for every call with a new value. */
const SWEEP_PAUSE_MS = 1000;
/** Longer ones are hashed, so that a row's size is bounded. */
const MAX_VALUE_LENGTH = 256;
/** Not a list, as those of values are. */
const OTHERS = '"others"';

export interface PlacedBucket {
  /** In the database. */
  readonly name: string;
  readonly bucket: SpendBucket;
}

export class RuleBuckets {
  /** The rule's gateway is gone: what is settled from now on counts for nobody. */
  isForgotten = false;
  readonly #rule: SpendRule;
  readonly #buckets = new Map<string, SpendBucket>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(rule: SpendRule) {
    this.#rule = rule;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** The bucket that `partition` counts in. */
  find(partition: string | null, now: number): PlacedBucket {
    const name = this.#nameOf(partition === null ? null : shorten(partition));
    const known = this.#buckets.get(name);
    if (known !== undefined) return { name, bucket: known };
    if (this.#isFull(now)) return this.#others;
    return { name, bucket: this.#create(name) };
  }

  /** The bucket that the database knows by this name. */
  restore(name: string, now: number): PlacedBucket {
    const at = name.indexOf(" ");
    return this.find(at === -1 ? null : name.slice(at + 1), now);
  }

  /** Drops the buckets in which nothing is spent and no call runs. */
  sweep(now: number): void {
    this.#sweptAt = now;
    for (const [name, bucket] of this.#buckets) if (bucket.isEmpty(now)) this.#buckets.delete(name);
  }

  get #others(): PlacedBucket {
    const name = this.#nameOf(OTHERS);
    return { name, bucket: this.#buckets.get(name) ?? this.#create(name) };
  }

  #isFull(now: number): boolean {
    if (this.#buckets.size < MAX_BUCKETS) return false;
    if (Math.abs(now - this.#sweptAt) >= SWEEP_PAUSE_MS) this.sweep(now);
    return this.#buckets.size >= MAX_BUCKETS;
  }

  #nameOf(partition: string | null): string {
    return partition === null ? this.#rule.id : `${this.#rule.id} ${partition}`;
  }

  #create(name: string): SpendBucket {
    const bucket = new SpendBucket(this.#rule.window * 1000, this.#rule.technique);
    this.#buckets.set(name, bucket);
    return bucket;
  }
}

function shorten(partition: string): string {
  return partition.length <= MAX_VALUE_LENGTH ? partition : `sha256:${hash("sha256", partition)}`;
}
