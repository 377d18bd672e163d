/**
 * A cache of rendered resources. It is used only if one process owns the database, so that every change passes through it. In a cluster it
 * stays empty: another node could change a resource, and a check of the version would cost the round trip that the read costs.
 *
 * Invariants:
 * 1. No reader sees an older state after a newer one: from before the commit of a batch until the batch is durable, its resources are not cached
 *    and are read from the database.
 * 2. A row that was read before a change is not cached after the change: an entry is accepted only if nothing has changed since its row was read.
 */
import { LRUCache } from "lru-cache";
import { identityOf, type ResourceKey } from "./resource-row.ts";

/** Limit for all entries. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Estimated size of an entry in bytes, without its texts. */
const ENTRY_OVERHEAD = 200;

/** A resource as it is sent to clients. */
export interface ResourceText {
  readonly json: string;
  /** With quotes, as in the header. */
  readonly etag: string;
}

export class ResourceCache {
  readonly #entries = new LRUCache<string, ResourceText>({
    maxSize: MAX_BYTES,
    // Counting bytes instead of characters also makes V8 flatten the concatenated string.
    sizeCalculation: (text, key) => Buffer.byteLength(text.json) + key.length + ENTRY_OVERHEAD,
  });
  /** Number of batches that are writing a key. */
  readonly #writing = new Map<string, number>();
  readonly #isUsed: boolean;
  #generation = 0;

  constructor({ isShared = false }: { readonly isShared?: boolean } = {}) {
    this.#isUsed = !isShared;
  }

  /** Incremented by every change; read it before reading the database. */
  get generation(): number {
    return this.#generation;
  }

  get(key: string): ResourceText | undefined {
    return this.#entries.get(key);
  }

  /** Adds an entry if nothing has changed since `generation`. */
  put(key: string, text: ResourceText, generation: number): void {
    if (this.#isUsed && generation === this.#generation && !this.#writing.has(key)) {
      this.#entries.set(key, text);
    }
  }

  clear(): void {
    this.#generation += 1;
    this.#entries.clear();
  }

  /** Removes the entries. To be called before the changes are committed. */
  beginWrite(keys: readonly string[]): void {
    this.#generation += 1;
    for (const key of keys) {
      this.#entries.delete(key);
      this.#writing.set(key, (this.#writing.get(key) ?? 0) + 1);
    }
  }

  /** To be called when the changes are durable or have failed. */
  endWrite(keys: readonly string[]): void {
    this.#generation += 1;
    for (const key of keys) {
      const count = (this.#writing.get(key) ?? 1) - 1;
      if (count === 0) this.#writing.delete(key);
      else this.#writing.set(key, count);
    }
  }
}

export function cacheKey(account: string | number, resource: ResourceKey): string {
  return `${account}\0${identityOf(resource)}`;
}
