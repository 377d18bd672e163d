/**
 * Keeps responses in memory for identical requests; the least recently used one is evicted first.
 *
 * Invariants:
 * 1. The key contains the gateway, its cache generation, the provider and the request as it goes upstream, with every header that may be
 *    a credential or a scope: no caller receives a response that was made for another credential.
 * 2. Of several requests with one key that miss at the same time, one goes upstream; the others wait for its outcome.
 * 3. Only complete responses with status 200 are kept.
 */
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import type { ResponseHead, Usage } from "../../engines/relay/index.ts";

export interface CachedResponse {
  readonly head: ResponseHead;
  readonly body: Buffer;
  readonly usage: Usage;
  readonly expiresAt: number;
}

/** How the request that went upstream ended. `abandoned`: its client disconnected, so a waiting request tries again. */
export type LeaderOutcome = "stored" | "uncacheable" | "abandoned";

/** Enough for every text; a larger response is a picture or a recording, of which few would fill the cache. */
const MAX_ENTRY_BYTES = 1024 * 1024;
/** Approximate size of an entry without its body: headers, key and bookkeeping. */
const ENTRY_OVERHEAD_BYTES = 1024;

export class ResponseCache {
  /** Of a body. */
  readonly maxEntryBytes: number;
  readonly #clock: Clock;
  readonly #entries: LRUCache<string, CachedResponse> | null;
  readonly #leaders = new Map<string, Promise<LeaderOutcome>>();

  constructor(maxBytes: number, clock: Clock) {
    this.maxEntryBytes = Math.min(MAX_ENTRY_BYTES, maxBytes);
    this.#clock = clock;
    this.#entries =
      maxBytes === 0
        ? null
        : new LRUCache({
            maxSize: maxBytes,
            sizeCalculation: (entry) => entry.body.length + ENTRY_OVERHEAD_BYTES,
          });
  }

  get isOn(): boolean {
    return this.#entries !== null;
  }

  find(key: string): CachedResponse | undefined {
    const entry = this.#entries?.get(key);
    if (entry === undefined || entry.expiresAt > this.#clock.now()) return entry;
    this.#entries?.delete(key);
    return undefined;
  }

  /** The outcome of the request with this key that is upstream; undefined when there is none. */
  leaderOf(key: string): Promise<LeaderOutcome> | undefined {
    return this.#leaders.get(key);
  }

  /** Registers a request that goes upstream; the returned function reports its outcome and must be called once. */
  lead(key: string): (outcome: LeaderOutcome) => void {
    const { promise, resolve } = Promise.withResolvers<LeaderOutcome>();
    this.#leaders.set(key, promise);
    return (outcome) => {
      // Only the first report counts: another call may lead by the second one.
      if (this.#leaders.get(key) === promise) this.#leaders.delete(key);
      resolve(outcome);
    };
  }

  store(key: string, response: Omit<CachedResponse, "expiresAt">, ttlMs: number): void {
    this.#entries?.set(key, { ...response, expiresAt: this.#clock.now() + ttlMs });
  }
}

/** Parts are length-prefixed, so that different lists of parts give different keys. */
export function cacheKey(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest("base64");
}
