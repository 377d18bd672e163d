/**
 * What the answers of a provider say about a key.
 *
 * States:  active → cooldown of a model (429) → active, after the time that the provider names, else 30 s, doubled with each further 429, at most 10 min
 *          active → invalid (401, 403) → active, when the key is edited
 *
 * Providers limit the rate of each model, so a key cools for the model of the call only. A time that the provider did not name moves calls to other
 * keys; it does not close a key that is the only one.
 *
 * Nodes that share a database share `invalid`, and that a stored key has worked: one node asks the provider for all. Cool-downs, refused models and
 * everything about a key in a variable or file, which may differ from node to node, stay with the node.
 *
 * A 403 of a key that has worked before concerns the model of the call only: providers answer 403 for a model that the key's account has not enabled, and a
 * caller chooses the model. Otherwise any caller could make a working key invalid for all others.
 * A cloud identity whose credential was refused is active again with its next credential.
 * See docs/decisions/0119 and gateway/README.md.
 */
import type { ProviderKey } from "./provider-key.ts";

/** The answer of a provider to a call with the key. */
export interface KeyOutcome {
  readonly status: number;
  readonly model: string;
  /** From `retry-after-ms` or `retry-after`; null if the provider named no time. */
  readonly retryAfterMs: number | null;
}

export type KeyStatus = "active" | "cooldown" | "invalid" | "disabled";

/** `invalid` and `worked` must be stored. `used`: the key was accepted, and `worked`: for the first time. */
export type HealthChange = "invalid" | "worked" | "used" | "none";

const FIRST_COOLDOWN_MS = 30_000;
const MAX_COOLDOWN_MS = 600_000;
/** A provider that names a longer time is asked again after this time. */
const MAX_NAMED_COOLDOWN_MS = 3_600_000;
/** Callers choose the names of models. */
const MAX_MODELS = 100;
/** A call waits for the named time with a timer, which may fire this much early. */
const TIMER_SLACK_MS = 2;

interface Cooldown {
  readonly until: number;
  /** The provider named the time; otherwise it is a guess. */
  readonly isNamed: boolean;
  readonly strikes: number;
}

export class KeyHealth {
  /** The rate limit of the key, which nodes share, is used up until then. */
  fullUntil = 0;
  isInvalid: boolean;
  /** The provider has accepted the key since it was edited. */
  hasWorked: boolean;
  usedAt: number | null;
  readonly refusedModels = new Set<string>();
  #textState: string | null = null;
  #credential = "";
  /** By model. */
  readonly #cooldowns = new Map<string, Cooldown>();
  #periodStart = 0;
  #callsInPeriod = 0;

  constructor(key: ProviderKey) {
    this.isInvalid = key.invalidSince !== null;
    this.hasWorked = key.lastUsedAt !== null;
    this.usedAt = key.lastUsedAt;
  }

  /** The row was read again: another node may have changed it. */
  follow({ secretId, invalidSince, lastUsedAt }: ProviderKey): void {
    if (secretId !== null) return;
    this.isInvalid = invalidSince !== null;
    if (lastUsedAt === null) return;
    this.hasWorked = true;
    this.usedAt = Math.max(this.usedAt ?? 0, lastUsedAt);
  }

  /** The text of a key in a variable or file was read; `state` identifies it. A changed file is a new key. */
  followText(state: string): void {
    if (this.#textState !== null && this.#textState !== state) this.#reset();
    this.#textState = state;
  }

  /** `generation` identifies the credential of a cloud identity. The cloud knows the identity, so what a provider then refuses is a model. */
  followCredential(generation: string): void {
    if (this.#credential === generation) return;
    this.#credential = generation;
    this.isInvalid = false;
    if (generation !== "") this.hasWorked = true;
  }

  #reset(): void {
    this.isInvalid = false;
    this.hasWorked = false;
    this.#cooldowns.clear();
    this.refusedModels.clear();
  }

  report({ status, model, retryAfterMs }: KeyOutcome, now: number): HealthChange {
    if (status === 429) {
      this.#cool(model, retryAfterMs, now);
      return "none";
    }
    if (status === 401 || (status === 403 && (!this.hasWorked || model === ""))) {
      if (this.isInvalid) return "none";
      this.isInvalid = true;
      return "invalid";
    }
    if (status === 403) {
      if (this.refusedModels.size >= MAX_MODELS) this.refusedModels.clear();
      this.refusedModels.add(model);
      return "none";
    }
    if (status >= 400) return "none";
    this.#cooldowns.delete(model);
    this.usedAt = now;
    if (this.hasWorked) return "used";
    this.hasWorked = true;
    return "worked";
  }

  #cool(model: string, retryAfterMs: number | null, now: number): void {
    const strikes = this.#cooldowns.get(model)?.strikes ?? 0;
    const ms =
      retryAfterMs === null
        ? Math.min(FIRST_COOLDOWN_MS * 2 ** strikes, MAX_COOLDOWN_MS)
        : Math.min(retryAfterMs, MAX_NAMED_COOLDOWN_MS) - TIMER_SLACK_MS;
    const [oldest] = this.#cooldowns.keys();
    if (this.#cooldowns.size >= MAX_MODELS && oldest !== undefined) this.#cooldowns.delete(oldest);
    this.#cooldowns.set(model, {
      until: now + ms,
      isNamed: retryAfterMs !== null,
      strikes: Math.min(strikes + 1, 10),
    });
  }

  /** When the key can be used for all models again; 0 if no model has made it cool. */
  get cooldownUntil(): number {
    return Math.max(0, ...[...this.#cooldowns.values()].map(({ until }) => until));
  }

  /** 0 if the key may be used for the model now, else the time until it may. `isOnly`: no other key could be used instead. */
  waitMs(key: ProviderKey, model: string, now: number, isOnly: boolean): number {
    const cooldown = this.#cooldowns.get(model);
    const until = cooldown === undefined || (isOnly && !cooldown.isNamed) ? 0 : cooldown.until;
    const cooling = Math.max(until - now, this.fullUntil - now, 0);
    if (key.rateLimit === null) return cooling;
    const periodMs = key.rateLimitPeriodS * 1000;
    const end = this.#periodStart + periodMs;
    return now < end && this.#callsInPeriod >= key.rateLimit ? Math.max(cooling, end - now) : cooling;
  }

  /** Counts a call against the rate limit of the key, if this process is alone. */
  count(key: ProviderKey, now: number): void {
    if (key.rateLimit === null) return;
    if (now >= this.#periodStart + key.rateLimitPeriodS * 1000 || now < this.#periodStart) {
      this.#periodStart = now;
      this.#callsInPeriod = 0;
    }
    this.#callsInPeriod += 1;
  }

  statusOf(key: ProviderKey, now: number): KeyStatus {
    if (key.isDisabled) return "disabled";
    if (this.isInvalid) return "invalid";
    return this.cooldownUntil > now ? "cooldown" : "active";
  }
}
