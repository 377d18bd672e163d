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

  /** Counts a call; throws `gateway_rate_limited` with `retry-after` when the gateway's limit is reached. */
  take(gateway: Gateway): void {
    const { rate_limiting_limit: limit, rate_limiting_interval: interval } = gateway.settings;
    if (limit === null || limit === 0 || interval === null || interval === 0) return;
    const waitMs = this.#limiterOf(gateway, limit, interval).take(this.#steadyClock.now());
    if (waitMs === null) return;
    throw new SignalboxError("gateway_rate_limited", {
      headers: { "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))) },
    });
  }

  forget(gateway: Gateway): void {
    this.#entries.delete(keyOf(gateway));
  }

  #limiterOf(gateway: Gateway, limit: number, intervalS: number): RateLimiter {
    const key = keyOf(gateway);
    const rule = ruleOf(gateway.settings);
    let entry = this.#entries.get(key);
    if (entry === undefined || entry.rule !== rule) {
      const Limiter =
        gateway.settings.rate_limiting_technique === "sliding" ? SlidingWindowLimiter : FixedWindowLimiter;
      entry = { limiter: new Limiter(limit, intervalS * 1000), rule };
      this.#entries.set(key, entry);
    }
    return entry.limiter;
  }
}

function keyOf(gateway: Gateway): string {
  return `${gateway.accountId}/${gateway.id}`;
}

function ruleOf(settings: GatewaySettings): string {
  return `${settings.rate_limiting_limit}/${settings.rate_limiting_interval}/${settings.rate_limiting_technique}`;
}

/** Counts the calls of one gateway. `take` is synchronous, so simultaneous calls cannot exceed the limit. */
interface RateLimiter {
  /** Counts the call and returns null when it may pass; otherwise returns the milliseconds until a call may pass. */
  take(now: number): number | null;
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
    const window = Math.floor(now / this.#intervalMs);
    // A clock that steps back by a rounding error must not reopen an earlier window.
    if (window > this.#window) {
      this.#window = window;
      this.#count = 0;
    }
    if (this.#count >= this.#limit) return (this.#window + 1) * this.#intervalMs - now;
    this.#count += 1;
    return null;
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

  take(now: number): number | null {
    while (this.#length > 0 && (this.#times[this.#start] ?? 0) <= now - this.#intervalMs) {
      this.#start = (this.#start + 1) % this.#times.length;
      this.#length -= 1;
    }
    if (this.#length >= this.#limit) return (this.#times[this.#start] ?? now) + this.#intervalMs - now;
    if (this.#length === this.#times.length) this.#grow();
    this.#times[(this.#start + this.#length) % this.#times.length] = now;
    this.#length += 1;
    return null;
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
