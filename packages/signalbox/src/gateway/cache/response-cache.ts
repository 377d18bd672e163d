/**
 * Responses kept in memory for requests that are exactly the same, least recently used first out.
 *
 * Invariants:
 * 1. The key holds the gateway, its cache generation, the provider and the request as it goes upstream, with every header that may be a
 *    credential or a scope: nobody is answered from a response that another credential paid for or could see.
 * 2. Of requests with one key that miss at the same time, one goes upstream; the others wait for what becomes of it.
 * 3. Only whole responses with status 200 are kept.
 */
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import type { CallUsage } from "../../engines/call-log/index.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";

export interface CachedResponse {
  readonly head: ResponseHead;
  readonly body: Buffer;
  readonly usage: CallUsage;
  readonly expiresAt: number;
}

/** What became of the request that went upstream: `abandoned` means its client left, and that says nothing about the response. */
export type LeaderOutcome = "stored" | "uncacheable" | "abandoned";

/** Rough size of an entry beside its body: headers, key, bookkeeping. */
const ENTRY_OVERHEAD_BYTES = 1024;

export class ResponseCache {
  readonly maxEntryBytes: number;
  readonly #clock: Clock;
  readonly #entries: LRUCache<string, CachedResponse> | null;
  readonly #leaders = new Map<string, Promise<LeaderOutcome>>();

  constructor(maxBytes: number, maxEntryBytes: number, clock: Clock) {
    this.maxEntryBytes = Math.min(maxEntryBytes, maxBytes);
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

  /** The request with this key that is upstream now, if any. */
  leaderOf(key: string): Promise<LeaderOutcome> | undefined {
    return this.#leaders.get(key);
  }

  /** Announces a request that goes upstream; the returned function says what became of it and must be called once. */
  lead(key: string): (outcome: LeaderOutcome) => void {
    const { promise, resolve } = Promise.withResolvers<LeaderOutcome>();
    this.#leaders.set(key, promise);
    return (outcome) => {
      this.#leaders.delete(key);
      resolve(outcome);
    };
  }

  store(key: string, response: Omit<CachedResponse, "expiresAt">, ttlMs: number): void {
    this.#entries?.set(key, { ...response, expiresAt: this.#clock.now() + ttlMs });
  }
}

/** Parts are length-prefixed, so that no two lists of parts give the same key. */
export function cacheKey(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest("base64");
}
