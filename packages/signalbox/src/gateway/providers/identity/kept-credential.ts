/**
 * A credential that expires, kept and replaced in time.
 *
 * Invariants:
 * 1. One request at a time: callers that come meanwhile share it.
 * 2. From `AHEAD_MS` before the end a new credential is fetched while the old one is used; from `MARGIN_MS` before the end callers wait for it.
 * 3. A failure is reported again for `PAUSE_MS`, so that a server that is in trouble gets few requests; ahead of the end for `AHEAD_PAUSE_MS`.
 */
import type { Clock } from "../../../core/clock.ts";

export interface Expiring<T> {
  readonly value: T;
  /** Milliseconds since 1970; infinite for a credential that does not expire. */
  readonly expiresAt: number;
}

const AHEAD_MS = 5 * 60_000;
/** A credential outlives the request that it is sent with. */
const MARGIN_MS = 60_000;
const PAUSE_MS = 1000;
const AHEAD_PAUSE_MS = 10_000;
/** A credential that is refused sooner is not at fault: another one would be refused, too. */
const MIN_AGE_MS = 60_000;

export class KeptCredential<T> {
  readonly #fetch: () => Promise<Expiring<T>>;
  readonly #clock: Clock;
  #kept: (Expiring<T> & { readonly fetchedAt: number }) | null = null;
  #running: Promise<T> | null = null;
  #failure: { readonly error: Error; readonly at: number } | null = null;

  constructor(fetch: () => Promise<Expiring<T>>, clock: Clock) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  get expiresAt(): number | null {
    return this.#kept?.expiresAt ?? null;
  }

  /** Why there is no newer one; null after a success. */
  get error(): string | null {
    return this.#failure?.error.message ?? null;
  }

  /** Changes when another credential is used. */
  get generation(): string {
    return this.#usable() === null ? "" : String(this.#kept?.fetchedAt);
  }

  /** A promise while there is no credential; it rejects if none can be had. */
  get(): T | Promise<T> {
    const kept = this.#usable();
    if (kept === null) {
      const failure = this.#failure;
      return failure !== null && this.#isWithin(failure.at, PAUSE_MS)
        ? Promise.reject(failure.error)
        : this.#refresh();
    }
    const mayAsk = this.#failure === null || !this.#isWithin(this.#failure.at, AHEAD_PAUSE_MS);
    // The old one is good for a while, and the failure is shown.
    if (this.#clock.now() >= kept.expiresAt - AHEAD_MS && mayAsk) this.#refresh().catch(() => undefined);
    return kept.value;
  }

  /** The cloud has refused the credential. */
  refuse(): void {
    if (this.#kept !== null && !this.#isWithin(this.#kept.fetchedAt, MIN_AGE_MS)) this.#kept = null;
  }

  #usable(): Expiring<T> | null {
    const kept = this.#kept;
    return kept !== null && this.#clock.now() < kept.expiresAt - MARGIN_MS ? kept : null;
  }

  /** False after a step of the clock, too. */
  #isWithin(since: number, ms: number): boolean {
    return Math.abs(this.#clock.now() - since) < ms;
  }

  #refresh(): Promise<T> {
    this.#running ??= this.#renew().finally(() => (this.#running = null));
    return this.#running;
  }

  async #renew(): Promise<T> {
    try {
      const fetched = await this.#fetch();
      this.#kept = { ...fetched, fetchedAt: this.#clock.now() };
      this.#failure = null;
      return fetched.value;
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error("the credential cannot be had", { cause });
      this.#failure = { error, at: this.#clock.now() };
      throw error;
    }
  }
}
