/**
 * The rate limit of every gateway that has one. A change of the limit begins a new count, any other change of settings does not.
 *
 * Time comes from a clock that only grows: with the system's, a day that was set by mistake and taken back would leave a limited
 * gateway shut for that day.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { GatewaySettings } from "../settings/gateway-settings.ts";
import { FixedWindowLimiter, type RateLimiter, SlidingWindowLimiter } from "./rate-limiter.ts";

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
