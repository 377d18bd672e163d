/**
 * The buckets of one spend rule: a single one, or one for each value of the metadata that the rule partitions by.
 *
 * Callers choose the values, so the number of buckets is bounded: empty buckets are dropped, and once `MAX_BUCKETS` are in use, all
 * further values share one bucket with the same limit. Inventing values therefore raises no limit; it can only make unrelated callers
 * share one.
 */
import { hash } from "node:crypto";
import type { SpendRule } from "../settings/gateway-settings.ts";
import { SpendBucket } from "./spend-bucket.ts";

/** Per rule. A bucket takes about 300 bytes, and one database row for each slot with an amount. */
const MAX_BUCKETS = 10_000;
/** A sweep takes about a millisecond, too long for every call with a new value. */
const SWEEP_PAUSE_MS = 1000;
/** Longer values are hashed, so that the size of a row is bounded. */
const MAX_VALUE_LENGTH = 256;
/** Cannot be the name of a value: those are JSON arrays. */
const OTHERS = '"others"';

export interface NamedBucket {
  /** The name in the database. */
  readonly name: string;
  readonly bucket: SpendBucket;
}

export class RuleBuckets {
  /** The gateway was deleted: amounts settled from now on are not written. */
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

  /** The bucket of a partition. */
  find(partition: string | null, now: number): NamedBucket {
    const name = this.#nameOf(partition === null ? null : shorten(partition));
    const known = this.#buckets.get(name);
    if (known !== undefined) return { name, bucket: known };
    if (this.#isFull(now)) return this.#others;
    return { name, bucket: this.#create(name) };
  }

  /** The bucket with this name in the database. */
  restore(name: string, now: number): NamedBucket {
    const at = name.indexOf(" ");
    return this.find(at === -1 ? null : name.slice(at + 1), now);
  }

  /** Drops empty buckets. */
  sweep(now: number): void {
    this.#sweptAt = now;
    for (const [name, bucket] of this.#buckets) if (bucket.isEmpty(now)) this.#buckets.delete(name);
  }

  get #others(): NamedBucket {
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
