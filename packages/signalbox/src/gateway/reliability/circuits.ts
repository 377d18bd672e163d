/**
 * Circuit breakers: a target that fails again and again is skipped for a while, so that calls do not wait for it before they reach the
 * next step. A target is a model of a provider, called with one key through one gateway.
 *
 * closed ──5 failures in a row, or half of at least 20 calls within 30 s──► open ──30 s──► half-open (one probe)
 *   ▲                                                                         ▲               │
 *   └───────────────────────────── the probe succeeds ────────────────────────┼── it fails ───┘
 *
 * Invariants:
 * 1. A target without failures has no entry: a service whose providers work pays for one comparison per call.
 * 2. In `half-open` one call at a time reaches the target. A probe that never reports (its client left) frees its place after the cool-down.
 * 3. The number of entries is bounded, because callers choose the names of models; the oldest is dropped.
 * 4. Gateways do not share circuits: the failures of one tenant's calls do not redirect those of another.
 */
import type { Clock } from "../../core/clock.ts";
import type { PickedKey } from "../step/key-pool.ts";
import type { Step } from "../step/step.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { AttemptFailure } from "./attempt-failure.ts";

const FAILURES_IN_A_ROW = 5;
const WINDOW_MS = 30_000;
const MIN_CALLS = 20;
const MAX_FAILED_SHARE = 0.5;
const COOL_MS = 30_000;
const MAX_ENTRIES = 10_000;

export interface CircuitTarget {
  readonly accountId: string;
  readonly gatewayId: string;
  readonly provider: string;
  readonly model: string;
  /** Id of the stored key; null for the caller's own. */
  readonly keyId: string | null;
}

export type CircuitState = "closed" | "open" | "half_open";

export interface Circuit {
  readonly target: CircuitTarget;
  readonly state: CircuitState;
  readonly failuresInARow: number;
  readonly failures: number;
  readonly calls: number;
  /** Times of the service's clock; null unless open. */
  readonly openedAt: number | null;
  readonly probeAt: number | null;
}

interface Entry {
  readonly target: CircuitTarget;
  isOpen: boolean;
  openedAt: number;
  /** When the running probe began; null without one. */
  probeSince: number | null;
  inARow: number;
  windowStart: number;
  calls: number;
  failures: number;
}

export class Circuits {
  /** How often circuits have opened, by provider, since the start. */
  readonly opened = new Map<string, number>();
  /** A field, because every call reads it. */
  isEmpty = true;
  readonly #entries = new Map<string, Entry>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a failure that the target is to blame for; returns whether the circuit is open now. */
  report(target: CircuitTarget, failure: AttemptFailure): boolean {
    if (isTargetsFault(failure, target.keyId !== null)) this.failed(target);
    // A target that refuses a request works: the probe of a half-open circuit may be such a request.
    else if (failure.kind === "status" && failure.status !== 429) this.succeeded(target);
    return this.#entries.get(keyOf(target))?.isOpen === true;
  }

  /** False when the target should be skipped. A call that is let through a half-open circuit is its probe. */
  admits(target: CircuitTarget): boolean {
    const entry = this.#entries.get(keyOf(target));
    if (entry === undefined || !entry.isOpen) return true;
    const now = this.#clock.now();
    if (now < entry.openedAt + COOL_MS) return false;
    if (entry.probeSince !== null && now < entry.probeSince + COOL_MS) return false;
    entry.probeSince = now;
    return true;
  }

  succeeded(target: CircuitTarget): void {
    const key = keyOf(target);
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    const now = this.#clock.now();
    if (entry.isOpen || now >= entry.windowStart + WINDOW_MS) {
      this.#delete(key);
      return;
    }
    entry.inARow = 0;
    entry.calls += 1;
  }

  failed(target: CircuitTarget): void {
    const key = keyOf(target);
    const now = this.#clock.now();
    const entry = this.#entries.get(key) ?? this.#create(key, target, now);
    entry.probeSince = null;
    if (entry.isOpen) {
      // A call that began before the circuit opened says nothing about the target now.
      if (now >= entry.openedAt + COOL_MS) this.#open(entry, now);
      return;
    }
    if (now >= entry.windowStart + WINDOW_MS) {
      entry.windowStart = now;
      entry.calls = 0;
      entry.failures = 0;
    }
    entry.inARow += 1;
    entry.calls += 1;
    entry.failures += 1;
    const isOften = entry.calls >= MIN_CALLS && entry.failures >= entry.calls * MAX_FAILED_SHARE;
    if (entry.inARow >= FAILURES_IN_A_ROW || isOften) this.#open(entry, now);
  }

  /** The circuits of one gateway that have failures. */
  list(accountId: string, gatewayId: string): Circuit[] {
    return this.#all().filter(
      ({ target }) => target.accountId === accountId && target.gatewayId === gatewayId,
    );
  }

  count(state: CircuitState): number {
    return this.#all().filter((circuit) => circuit.state === state).length;
  }

  /** Closes the circuits of a gateway: it was deleted, or an operator knows that the target works. */
  forget(accountId: string, gatewayId: string): void {
    for (const [key, { target }] of this.#entries) {
      if (target.accountId === accountId && target.gatewayId === gatewayId) this.#delete(key);
    }
  }

  #all(): Circuit[] {
    const now = this.#clock.now();
    return [...this.#entries.values()].map((entry) => ({
      target: entry.target,
      state: stateOf(entry, now),
      failuresInARow: entry.inARow,
      failures: entry.failures,
      calls: entry.calls,
      openedAt: entry.isOpen ? entry.openedAt : null,
      probeAt: entry.isOpen ? entry.openedAt + COOL_MS : null,
    }));
  }

  #create(key: string, target: CircuitTarget, now: number): Entry {
    if (this.#entries.size >= MAX_ENTRIES) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    const entry: Entry = {
      target,
      isOpen: false,
      openedAt: 0,
      probeSince: null,
      inARow: 0,
      windowStart: now,
      calls: 0,
      failures: 0,
    };
    this.#entries.set(key, entry);
    this.isEmpty = false;
    return entry;
  }

  #delete(key: string): void {
    this.#entries.delete(key);
    this.isEmpty = this.#entries.size === 0;
  }

  #open(entry: Entry, now: number): void {
    if (!entry.isOpen) {
      const { provider } = entry.target;
      this.opened.set(provider, (this.opened.get(provider) ?? 0) + 1);
    }
    entry.isOpen = true;
    entry.openedAt = now;
  }
}

export function targetOf(gateway: Gateway, step: Step, key: PickedKey | null): CircuitTarget {
  return {
    accountId: gateway.accountId,
    gatewayId: gateway.id,
    provider: step.provider.slug,
    model: step.model,
    keyId: key?.id ?? null,
  };
}

function stateOf(entry: Entry, now: number): CircuitState {
  if (!entry.isOpen) return "closed";
  return now < entry.openedAt + COOL_MS ? "open" : "half_open";
}

function keyOf({ accountId, gatewayId, provider, model, keyId }: CircuitTarget): string {
  return `${accountId}/${gatewayId}/${provider}/${keyId ?? ""}/${model}`;
}

/**
 * Refusals of a request are not the target's fault. A 429 belongs to the key: it counts for a stored key, but not for the callers' own
 * keys, which are not told apart.
 */
function isTargetsFault({ kind, status }: AttemptFailure, hasStoredKey: boolean): boolean {
  if (kind === "refused" || kind === "blocked") return false;
  if (kind !== "status" || status === null) return true;
  return status >= 500 || status === 408 || (status === 429 && hasStoredKey);
}
