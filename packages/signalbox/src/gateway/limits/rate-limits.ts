/**
 * Applies the rate limit of each gateway that has one. Changing the limit starts a new count; changing other settings does not. Counts
 * are in memory, so a restart begins with empty windows.
 *
 * Time comes from a monotonic clock: if the system clock were set forward by a day and back, a limited gateway would refuse calls for
 * that day.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { GatewaySettings } from "../settings/gateway-settings.ts";
import { rateHeaders } from "./limit-refusal.ts";

interface Entry {
  readonly limiter: RateLimiter;
  readonly rule: string;
}

export class RateLimits {
  readonly #steadyClock: Clock;
  readonly #entries = new Map<string, Entry>();

  constructor(steadyClock: Clock) {
    this.#steadyClock = steadyClock;
  }

  /** `gateway_rate_limited` when a call may not pass; counts nothing. */
  check(gateway: Gateway): SignalboxError | null {
    if (!isLimited(gateway)) return null;
    const waitMs = this.#limiterOf(gateway).waitMs(this.#steadyClock.now());
    return waitMs === 0 ? null : toError(gateway.settings, waitMs);
  }

  /** Counts a call, or another attempt of one; `gateway_rate_limited` when it may not pass. */
  take(gateway: Gateway): SignalboxError | null {
    if (!isLimited(gateway)) return null;
    const waitMs = this.#limiterOf(gateway).take(this.#steadyClock.now());
    return waitMs === null ? null : toError(gateway.settings, waitMs);
  }

  forget(gateway: Gateway): void {
    this.#entries.delete(keyOf(gateway));
  }

  #limiterOf(gateway: Gateway): RateLimiter {
    const { rate_limiting_limit: limit, rate_limiting_interval: intervalS } = gateway.settings;
    const key = keyOf(gateway);
    const rule = ruleOf(gateway.settings);
    let entry = this.#entries.get(key);
    if (entry === undefined || entry.rule !== rule) {
      const Limiter =
        gateway.settings.rate_limiting_technique === "sliding" ? SlidingWindowLimiter : FixedWindowLimiter;
      entry = { limiter: new Limiter(limit ?? 0, (intervalS ?? 0) * 1000), rule };
      this.#entries.set(key, entry);
    }
    return entry.limiter;
  }
}

function isLimited({ settings }: Gateway): boolean {
  const { rate_limiting_limit: limit, rate_limiting_interval: interval } = settings;
  return limit !== null && limit !== 0 && interval !== null && interval !== 0;
}

function keyOf(gateway: Gateway): string {
  return `${gateway.accountId}/${gateway.id}`;
}

function ruleOf(settings: GatewaySettings): string {
  return `${settings.rate_limiting_limit}/${settings.rate_limiting_interval}/${settings.rate_limiting_technique}`;
}

function toError({ rate_limiting_limit: limit }: GatewaySettings, waitMs: number): SignalboxError {
  return new SignalboxError("gateway_rate_limited", {
    headers: {
      "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))),
      ...rateHeaders("requests", limit ?? 0, 0, waitMs),
    },
  });
}

/** Counts the calls of one gateway. `take` is synchronous, so simultaneous calls cannot exceed the limit. */
interface RateLimiter {
  /** Counts the call and returns null when it may pass; otherwise returns the milliseconds until a call may pass. */
  take(now: number): number | null;
  /** Milliseconds until a call may pass; 0 when it may now. Counts nothing. */
  waitMs(now: number): number;
}

/** At most `limit` calls from one multiple of the interval to the next. */
export class FixedWindowLimiter implements RateLimiter {
  readonly #limit: number;
  readonly #intervalMs: number;
  #window = -1;
  #count = 0;

  constructor(limit: number, intervalMs: number) {
    this.#limit = limit;
    this.#intervalMs = intervalMs;
  }

  take(now: number): number | null {
    const waitMs = this.waitMs(now);
    if (waitMs > 0) return waitMs;
    this.#count += 1;
    return null;
  }

  waitMs(now: number): number {
    const window = Math.floor(now / this.#intervalMs);
    // A clock that steps back by a rounding error must not reopen an earlier window.
    if (window > this.#window) {
      this.#window = window;
      this.#count = 0;
    }
    return this.#count >= this.#limit ? (this.#window + 1) * this.#intervalMs - now : 0;
  }
}

/** At most `limit` calls in any period of one interval: keeps the time of each call that passed. */
export class SlidingWindowLimiter implements RateLimiter {
  readonly #limit: number;
  readonly #intervalMs: number;
  /** A ring of times, the oldest at `#start`; grows up to the limit. */
  #times: Float64Array;
  #start = 0;
  #length = 0;

  constructor(limit: number, intervalMs: number) {
    this.#limit = limit;
    this.#intervalMs = intervalMs;
    this.#times = new Float64Array(Math.min(limit, 16));
  }

  waitMs(now: number): number {
    this.#dropOld(now);
    return this.#length >= this.#limit ? (this.#times[this.#start] ?? now) + this.#intervalMs - now : 0;
  }

  take(now: number): number | null {
    const waitMs = this.waitMs(now);
    if (waitMs > 0) return waitMs;
    if (this.#length === this.#times.length) this.#grow();
    this.#times[(this.#start + this.#length) % this.#times.length] = now;
    this.#length += 1;
    return null;
  }

  #dropOld(now: number): void {
    while (this.#length > 0 && (this.#times[this.#start] ?? 0) <= now - this.#intervalMs) {
      this.#start = (this.#start + 1) % this.#times.length;
      this.#length -= 1;
    }
  }

  #grow(): void {
    const larger = new Float64Array(Math.min(this.#limit, this.#times.length * 2));
    for (let i = 0; i < this.#length; i++) {
      larger[i] = this.#times[(this.#start + i) % this.#times.length] ?? 0;
    }
    this.#times = larger;
    this.#start = 0;
  }
}
