/**
 * The keys of one provider that a call may use: all keys without an alias, or the one that the call names. The attempt loop sees it through `StepKeys`.
 * Nothing here does I/O or throws.
 *
 * Which key: by weight at random among those that are enabled, healthy and allowed for the model. With a session the choice is that of rendezvous
 * hashing: the same session gets the same key while it is healthy, and only the sessions of a key that is not move to others.
 * See docs/decisions/0119.
 */
import { createHash } from "node:crypto";
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Taken } from "../limits/ledger.ts";
import { Refusal } from "../limits/limit-refusal.ts";
import type { KeyHealth, KeyOutcome } from "./key-health.ts";
import type { ProviderKey } from "./provider-key.ts";

/**
 * `cooling`: a key is available again after this time. `unusable`: waiting does not help. If nodes share the rate limits of keys, `unchecked`: the
 * database is unavailable. `failed`: no key is left but cloud identities that have no credential.
 */
export type KeyChoice =
  | { readonly kind: "key"; readonly id: string; readonly headers: readonly string[] }
  | { readonly kind: "cooling"; readonly retryAfterMs: number }
  | { readonly kind: "unusable" }
  | { readonly kind: "unchecked" | "failed"; readonly error: SignalboxError };

interface FoundKey {
  readonly kind: "found";
  readonly chosen: PoolKey;
  readonly text: string;
}

type Found = FoundKey | Extract<KeyChoice, { readonly kind: "cooling" | "unusable" }>;

/** A key as a pool uses it. */
export interface PoolKey {
  readonly key: ProviderKey;
  readonly health: KeyHealth;
  /** The text of the key; null if it cannot be used: not set, not granted, not readable. */
  readonly reveal: () => string | null;
  /** `model` in lower case. */
  readonly serves: (model: string) => boolean;
}

export interface ProviderKeyPoolParts {
  readonly keys: readonly PoolKey[];
  readonly clock: Clock;
  /** Counts a call with a key that has a rate limit; null if the process counts alone. */
  readonly takeRate: ((key: ProviderKey, isNow: boolean) => Taken | Promise<Taken>) | null;
  /** Identifies the keys, for the cache: a response is shared only by calls that could have used the same keys. */
  readonly scope: string;
  /** The headers that carry the key; a promise while the key is a cloud identity without a credential. It rejects with an error for the caller. */
  readonly toHeaders: (key: ProviderKey, text: string) => readonly string[] | Promise<readonly string[]>;
  /** What the answer changed in the health of a key. */
  readonly onReport: (key: PoolKey, outcome: KeyOutcome) => void;
}

export class ProviderKeyPool {
  readonly #parts: ProviderKeyPoolParts;

  constructor(parts: ProviderKeyPoolParts) {
    this.#parts = parts;
  }

  get scope(): string {
    return this.#parts.scope;
  }

  /** A promise only if nodes share the rate limits of keys, or a cloud identity has no credential. `isNow`: the call cannot wait. */
  pick(
    model: string,
    session: string | undefined,
    tried: ReadonlySet<string> | null,
    isNow: boolean,
  ): KeyChoice | Promise<KeyChoice> {
    const found = this.#find(model, session, tried);
    if (found.kind !== "found") return found;
    const { key } = found.chosen;
    const again = (others: ReadonlySet<string> | null) => this.pick(model, session, others, isNow);
    const headers = this.#parts.toHeaders(key, found.text);
    if (!(headers instanceof Promise)) return this.#count(found.chosen, headers, isNow, () => again(tried));
    const others = new Set(tried).add(key.id);
    if (isNow) {
      // The next call that needs the credential gets the failure.
      headers.catch(() => undefined);
      return again(others);
    }
    return headers.then(
      (late) => this.#count(found.chosen, late, isNow, () => again(tried)),
      async (error: unknown) => {
        if (!(error instanceof SignalboxError)) throw error;
        // Another key may be a key.
        const other = await again(others);
        return other.kind === "unusable" ? { kind: "failed", error } : other;
      },
    );
  }

  /** `again`: a key whose rate is used up is not found again, and another one may be. */
  #count(
    chosen: PoolKey,
    headers: readonly string[],
    isNow: boolean,
    again: () => KeyChoice | Promise<KeyChoice>,
  ): KeyChoice | Promise<KeyChoice> {
    const { clock, takeRate } = this.#parts;
    const { key, health } = chosen;
    if (key.rateLimit === null || takeRate === null) {
      health.count(key, clock.now());
      return { kind: "key", id: key.id, headers };
    }
    const conclude = (taken: Taken) => this.#counted(chosen, headers, taken) ?? again();
    const taken = takeRate(key, isNow);
    return taken instanceof Promise ? taken.then(conclude) : conclude(taken);
  }

  /** Null if the rate of the key is used up. */
  #counted({ key, health }: PoolKey, headers: readonly string[], taken: Taken): KeyChoice | null {
    if (!(taken instanceof Refusal)) return { kind: "key", id: key.id, headers };
    if (!taken.isChecked) return { kind: "unchecked", error: taken.toError() };
    health.fullUntil = this.#parts.clock.now() + Math.max(taken.waitMs, 1);
    return null;
  }

  /** True if `pick` would return a key. */
  hasKey(model: string, session: string | undefined, tried: ReadonlySet<string> | null): boolean {
    return this.#find(model, session, tried).kind === "found";
  }

  #find(model: string, session: string | undefined, tried: ReadonlySet<string> | null): Found {
    const { keys, clock } = this.#parts;
    const now = clock.now();
    const name = model.toLowerCase();
    let candidates = keys.filter(
      ({ key, health, reveal, serves }) =>
        !key.isDisabled &&
        // Reading an invalid key notices that its file has changed, which makes the key valid.
        (!health.isInvalid || (reveal() !== null && !health.isInvalid)) &&
        tried?.has(key.id) !== true &&
        !health.refusedModels.has(model) &&
        serves(name),
    );
    const isOnly = candidates.length === 1;
    let shortestMs = Infinity;
    while (candidates.length > 0) {
      const healthy = candidates.filter(({ key, health }) => {
        const waitMs = health.waitMs(key, model, now, isOnly);
        if (waitMs > 0) shortestMs = Math.min(shortestMs, waitMs);
        return waitMs === 0;
      });
      const chosen = choose(healthy, session);
      if (chosen === undefined) break;
      const text = chosen.reveal();
      if (text !== null) return { kind: "found", chosen, text };
      candidates = candidates.filter((candidate) => candidate !== chosen);
    }
    return shortestMs === Infinity ? { kind: "unusable" } : { kind: "cooling", retryAfterMs: shortestMs };
  }

  report(id: string, outcome: KeyOutcome): void {
    const found = this.#parts.keys.find(({ key }) => key.id === id);
    if (found !== undefined) this.#parts.onReport(found, outcome);
  }
}

/** True if the answer says that another key may be accepted. */
export function concernsKey(status: number): boolean {
  return status === 401 || status === 403 || status === 429;
}

function choose(keys: readonly PoolKey[], session: string | undefined): PoolKey | undefined {
  if (keys.length <= 1) return keys[0];
  return session === undefined ? byWeight(keys) : byRendezvous(keys, session);
}

function byWeight(keys: readonly PoolKey[]): PoolKey | undefined {
  let rest = Math.random() * keys.reduce((sum, { key }) => sum + key.weight, 0);
  return keys.find(({ key }) => (rest -= key.weight) < 0) ?? keys[keys.length - 1];
}

/** Each key gets a fraction from the session and its id; -weight / ln(fraction) is greatest for a key in proportion to its weight. */
function byRendezvous(keys: readonly PoolKey[], session: string): PoolKey | undefined {
  let best: PoolKey | undefined;
  let bestScore = -Infinity;
  for (const candidate of keys) {
    const digest = createHash("sha256").update(`${candidate.key.id} ${session}`).digest();
    const fraction = (digest.readUIntBE(0, 6) + 1) / (2 ** 48 + 2);
    const score = -candidate.key.weight / Math.log(fraction);
    if (score > bestScore) [best, bestScore] = [candidate, score];
  }
  return best;
}
