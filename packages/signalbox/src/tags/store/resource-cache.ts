/**
 * Answers for resources that are read again and again, in memory. One process owns the database, so every change passes through here.
 *
 * Invariants:
 * 1. Nobody reads an older state after a newer one was visible: what a batch writes is out of the cache from before its commit until
 *    it is on stable storage, and reads of it go to the database meanwhile.
 * 2. A row that was read before a change is never kept after it: what is put in must have been read since the last change of anything.
 */
import { LRUCache } from "lru-cache";
import type { ResourceText } from "../show-resource.ts";
import type { ResourceKey } from "./resource-row.ts";

/** Of all answers together. */
const MAX_BYTES = 16 * 1024 * 1024;
/** A guess at the cost of an entry beside its texts. */
const ENTRY_OVERHEAD = 200;

export class ResourceCache {
  readonly #entries = new LRUCache<string, ResourceText>({
    maxSize: MAX_BYTES,
    // Counting bytes, and not characters, also makes one flat string of the parts the text was put together from.
    sizeCalculation: (text, key) => Buffer.byteLength(text.json) + key.length + ENTRY_OVERHEAD,
  });
  /** How many batches are writing a key at the moment. */
  readonly #writing = new Map<string, number>();
  #generation = 0;

  /** Changes whenever something may have changed; read it before reading the database. */
  get generation(): number {
    return this.#generation;
  }

  get(key: string): ResourceText | undefined {
    return this.#entries.get(key);
  }

  /** Keeps what was read from the database, unless something has changed since `generation`. */
  put(key: string, text: ResourceText, generation: number): void {
    if (generation === this.#generation && !this.#writing.has(key)) this.#entries.set(key, text);
  }

  /** Forgets everything. */
  clear(): void {
    this.#generation += 1;
    this.#entries.clear();
  }

  /** Call before the commit of changes to these keys … */
  beginWrite(keys: readonly string[]): void {
    this.#generation += 1;
    for (const key of keys) {
      this.#entries.delete(key);
      this.#writing.set(key, (this.#writing.get(key) ?? 0) + 1);
    }
  }

  /** … and when they are durable, or have failed. */
  endWrite(keys: readonly string[]): void {
    this.#generation += 1;
    for (const key of keys) {
      const count = (this.#writing.get(key) ?? 1) - 1;
      if (count === 0) this.#writing.delete(key);
      else this.#writing.set(key, count);
    }
  }
}

/** Parts are separated by a character that none of them can contain. */
export function cacheKey(account: string | number, resource: ResourceKey): string {
  return `${account}\0${resource.type}\0${resource.id}\0${resource.zoneId}\0${resource.parentId}`;
}
