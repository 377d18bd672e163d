/**
 * Counts calls and money for the rate elements of routes. Time comes from a monotonic clock. Counts are in memory: a restart begins with empty
 * windows, as for the gateway's rate limit.
 *
 * Invariants:
 * 1. A count belongs to a bucket and to the element's limit: a new version of a route with the same limit goes on counting, another limit
 *    starts at zero.
 * 2. `take` is synchronous, so simultaneous calls cannot exceed a limit of calls. Money counts when a call ends; calls that run at the
 *    same time may exceed a limit of money by their own cost.
 * 3. The number of buckets is bounded, because callers choose keys; those that were not used for longest are dropped.
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import { FixedWindowLimiter, SlidingWindowLimiter } from "../limits/rate-limits.ts";
import type { RateElement } from "./route-graph.ts";

/** What a walk needs of the counters. */
export interface RouteCounters {
  /** Counts a call; null when it is within the limit, otherwise the milliseconds until one may pass. */
  take(element: RateElement, bucket: string): number | null;
  spend(element: RateElement, bucket: string, dollars: number): void;
}

const MAX_BUCKETS = 100_000;

interface Limiter {
  take(now: number): number | null;
}

export class MemoryRouteCounters implements RouteCounters {
  readonly #clock: Clock;
  readonly #calls = new LRUCache<string, Limiter>({ max: MAX_BUCKETS });
  readonly #money = new LRUCache<string, MoneyWindow>({ max: MAX_BUCKETS });

  constructor(steadyClock: Clock) {
    this.#clock = steadyClock;
  }

  take(element: RateElement, bucket: string): number | null {
    const now = this.#clock.now();
    if (element.limitType === "cost") return this.#windowOf(element, bucket).waitMs(now, element.limit);
    const key = keyOf(element, bucket);
    let limiter = this.#calls.get(key);
    if (limiter === undefined) {
      const Counter = element.technique === "sliding" ? SlidingWindowLimiter : FixedWindowLimiter;
      limiter = new Counter(Math.floor(element.limit), element.windowS * 1000);
      this.#calls.set(key, limiter);
    }
    return limiter.take(now);
  }

  spend(element: RateElement, bucket: string, dollars: number): void {
    if (dollars > 0) this.#windowOf(element, bucket).add(this.#clock.now(), dollars);
  }

  #windowOf(element: RateElement, bucket: string): MoneyWindow {
    const key = keyOf(element, bucket);
    let window = this.#money.get(key);
    if (window === undefined) {
      window = new MoneyWindow(element.windowS * 1000, element.technique === "sliding");
      this.#money.set(key, window);
    }
    return window;
  }
}

/** A sliding window is a hundred slots; money leaves it slot by slot. A fixed window is one slot. */
const SLOTS = 100;

class MoneyWindow {
  readonly #slotMs: number;
  readonly #slots: number;
  #spent: { readonly slot: number; dollars: number }[] = [];

  constructor(windowMs: number, isSliding: boolean) {
    this.#slots = isSliding ? SLOTS : 1;
    this.#slotMs = windowMs / this.#slots;
  }

  add(now: number, dollars: number): void {
    const slot = Math.floor(now / this.#slotMs);
    const last = this.#spent.at(-1);
    if (last?.slot === slot) last.dollars += dollars;
    else this.#spent.push({ slot, dollars });
  }

  /** Null below the limit; otherwise the time until enough money has left the window. */
  waitMs(now: number, limit: number): number | null {
    const oldest = Math.floor(now / this.#slotMs) - this.#slots + 1;
    this.#spent = this.#spent.filter(({ slot }) => slot >= oldest);
    let total = this.#spent.reduce((sum, { dollars }) => sum + dollars, 0);
    if (total < limit) return null;
    for (const { slot, dollars } of this.#spent) {
      total -= dollars;
      if (total < limit) return (slot + this.#slots) * this.#slotMs - now;
    }
    return this.#slots * this.#slotMs;
  }
}

function keyOf({ limit, windowS, technique }: RateElement, bucket: string): string {
  return `${limit}/${windowS}/${technique} ${bucket}`;
}
