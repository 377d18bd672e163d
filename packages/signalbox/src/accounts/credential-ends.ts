/**
 * Ends what is alive when its credential ends: open connections and streams register here and are called back when the token or the session
 * that opened them is revoked, logged out or expires.
 *
 * Invariants:
 * 1. A watch is called at most once, and never after it was stopped.
 * 2. Revocation calls back at once, before anything else happens; expiry calls back within a second of the clock's reaching it, also when the
 *    clock jumps.
 * 3. There is one timer in all, and none while nothing that can expire is watched: connections are not polled.
 */
import type { Clock } from "../core/clock.ts";

export interface WatchedCredential {
  readonly key: string;
  /** Milliseconds since the epoch; null for never. */
  readonly expiresAt: number | null;
}

interface Watch {
  readonly credentials: readonly WatchedCredential[];
  readonly onEnd: () => void;
}

interface Watched {
  readonly expiresAt: number | null;
  readonly watches: Set<Watch>;
}

/** A timer that slept through a jump of the wall clock would be late by the jump; this is how late it may be. */
const MAX_SLEEP_MS = 1000;

export class CredentialEnds {
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Watched>();
  /** No watched credential expires before this. */
  #nearest = Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `onEnd` when any of the credentials ends; the result stops that. */
  watch(credentials: readonly WatchedCredential[], onEnd: () => void): () => void {
    const watch: Watch = { credentials, onEnd };
    for (const { key, expiresAt } of credentials) {
      let watched = this.#byKey.get(key);
      if (watched === undefined) {
        watched = { expiresAt, watches: new Set() };
        this.#byKey.set(key, watched);
      }
      watched.watches.add(watch);
      if (expiresAt !== null && expiresAt < this.#nearest) {
        this.#nearest = expiresAt;
        this.#sleep();
      }
    }
    return () => this.#remove(watch);
  }

  /** The credential is gone: everything it opened ends now. */
  end(key: string): void {
    const watched = this.#byKey.get(key);
    if (watched === undefined) return;
    const failures: unknown[] = [];
    for (const watch of watched.watches) {
      this.#remove(watch);
      try {
        watch.onEnd();
      } catch (error) {
        failures.push(error);
      }
    }
    // After all were called: one connection's failure must not keep another one open.
    if (failures.length > 0)
      throw new AggregateError(failures, "a connection of an ended credential failed to end");
  }

  /** Stops the timer; the server is going away, and what it watched with it. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#byKey.clear();
  }

  #remove(watch: Watch): void {
    for (const { key } of watch.credentials) {
      const watched = this.#byKey.get(key);
      watched?.watches.delete(watch);
      if (watched?.watches.size === 0) this.#byKey.delete(key);
    }
  }

  #sleep(): void {
    clearTimeout(this.#timer);
    const delayMs = Math.min(Math.max(this.#nearest - this.#clock.now(), 0), MAX_SLEEP_MS);
    this.#timer = setTimeout(() => this.#wake(), delayMs).unref();
  }

  #wake(): void {
    this.#timer = undefined;
    if (this.#clock.now() >= this.#nearest) this.#endExpired();
    if (this.#byKey.size === 0) this.#nearest = Infinity;
    if (this.#nearest !== Infinity) this.#sleep();
  }

  #endExpired(): void {
    const now = this.#clock.now();
    const expired: string[] = [];
    let nearest = Infinity;
    for (const [key, { expiresAt }] of this.#byKey) {
      if (expiresAt === null) continue;
      if (expiresAt <= now) expired.push(key);
      else nearest = Math.min(nearest, expiresAt);
    }
    this.#nearest = nearest;
    for (const key of expired) this.end(key);
  }
}
