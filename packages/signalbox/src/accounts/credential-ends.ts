/**
 * Notifies open connections and streams when the token or session that opened them is revoked, logged out or expires.
 *
 * Invariants:
 * 1. The callback of a watch is called at most once, and never after the watch was stopped.
 * 2. A revocation calls the callbacks synchronously; an expiry calls them within one second, even if the wall clock is changed.
 * 3. One timer serves all watches. There is no timer while no watched credential can expire.
 * See docs/decisions/0086.
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
  expiresAt: number | null;
  readonly watches: Set<Watch>;
}

/** The maximum delay of an expiry after the wall clock is set forward. */
const MAX_SLEEP_MS = 1000;

export class CredentialEnds {
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Watched>();
  /** The earliest expiry of all watched credentials. */
  #nearest = Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `onEnd` when any of the credentials ends; the returned function stops watching. */
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

  /** Calls the callbacks of all watches of the credential. */
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
    // Thrown after all callbacks were called: one failure must not keep another connection open.
    if (failures.length > 0)
      throw new AggregateError(failures, "cannot close a connection whose credential has ended");
  }

  /** The expiry of the credential was changed. */
  reschedule(key: string, expiresAt: number | null): void {
    const watched = this.#byKey.get(key);
    if (watched === undefined) return;
    watched.expiresAt = expiresAt;
    if (expiresAt !== null && expiresAt < this.#nearest) {
      this.#nearest = expiresAt;
      this.#sleep();
    }
  }

  /** Stops the timer. */
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
