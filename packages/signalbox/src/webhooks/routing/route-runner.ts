/**
 * Makes the attempts of one route, at the node that owns the route.
 *
 *   due ─ claimed (due_at behind the end of the attempt) ─ attempt ─ delivered | failed | due again later
 *
 * Invariants:
 * 1. An event is claimed in the database before it is attempted, and its claim outlasts the time limit of the attempt: no other node or process attempts it
 *    in that time. After a crash it is due when the claim ends.
 * 2. At most `concurrent` attempts run, and they begin at the route's rate, whatever has accumulated.
 * 3. A paused route claims nothing. Attempts that run when the route is paused end as usual.
 * 4. A failing database delays attempts; each failure is followed by a pause.
 */
import { clearTimer, type Clock, setTimer, type Timer } from "../../core/clock.ts";
import type { Share } from "../../core/shared-pool.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { RoutedEvent } from "./event-record.ts";
import type { EventTable } from "./event-table.ts";
import { RateLimiter } from "./rate-limiter.ts";
import type { Route } from "./route.ts";

/** After a failure of the database. */
const PAUSE_MS = 1000;
/** A wall clock can be set while a timer runs. */
const MAX_TIMER_MS = 60_000;
/** More than the time from the claim to the first byte of a request, and from its end to the record of it. */
const CLAIM_MARGIN_MS = 5000;
/** Agents have no time limit of their own here; a turn that takes longer is recognised as a duplicate by the instance's ledger. */
const AGENT_CLAIM_MS = 120_000;

export interface RunnerParts {
  readonly table: EventTable;
  readonly clock: Clock;
  readonly logger: Logger;
  /** This node; null for a process that is alone. */
  readonly node: () => string | null;
  /** Places for attempts, shared by accounts. */
  readonly places: Share;
  /** Never rejects. Resolves when the end is recorded. */
  attempt(route: Route, event: RoutedEvent, claimedUntil: number): Promise<void>;
}

export class RouteRunner {
  readonly #parts: RunnerParts;
  #route: Route;
  #limiter: RateLimiter | null = null;
  #running = 0;
  /** Attempts that others began and that may still run, until the time. */
  #others = { count: 0, until: 0 };
  #isLooking = false;
  #looksAgain = false;
  #isStopped = false;
  #timer: Timer | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(parts: RunnerParts, route: Route) {
    this.#parts = parts;
    this.#route = route;
    this.#setRate(null);
  }

  get running(): number {
    return this.#running;
  }

  /** The settings were changed, or the route was paused or resumed. */
  follow(route: Route): void {
    const before = this.#route;
    this.#route = route;
    this.#setRate(before);
    this.wake();
  }

  /**
   * An owner before this one may have left attempts that run. Those of an agent need not be waited for: the ledger of the instance recognises a
   * repetition, also one that runs at the same time.
   */
  async takeOver(): Promise<void> {
    const { table, clock, node } = this.#parts;
    const self = node();
    const now = clock.now();
    if (this.#route.target.kind === "agent" && self !== null)
      await table.releaseOthers(this.#route, self, now);
    const count = await table.countAttempting(this.#route, now);
    this.#others = { count, until: now + claimMs(this.#route) };
    this.wake();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimer(this.#timer);
  }

  /** Looks for due events now. */
  wake(): void {
    if (this.#isStopped) return;
    this.#looksAgain = this.#isLooking;
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#look().then(
      () => {
        this.#isLooking = false;
        if (this.#looksAgain) this.wake();
      },
      (err: unknown) => {
        this.#isLooking = false;
        if (this.#isStopped) return;
        this.#parts.logger.warn(
          { err, ...about(this.#route) },
          "events of a webhook route cannot be read; trying again",
        );
        this.#wakeIn(PAUSE_MS);
      },
    );
  }

  async #look(): Promise<void> {
    const { table, clock, node } = this.#parts;
    for (;;) {
      const route = this.#route;
      if (this.#isStopped || route.pause !== null || route.listener !== null) return;
      // The end of an attempt, or the timer of the rate, looks again.
      if (this.#room() <= 0) return;
      const now = clock.now();
      const first = await table.firstDue(route);
      if (first === null) return;
      if (first > now) return this.#wakeIn(first - now);
      // The route was paused or changed in between.
      if (this.#route !== route) continue;
      // Attempts that were recorded together have ended since: one claim takes all their places.
      const limit = this.#room();
      const until = now + claimMs(route);
      const claimed = await table.claim(route, {
        now,
        until,
        limit,
        node: node(),
        isOrdered: route.isOrdered,
      });
      this.#limiter?.take(claimed.length);
      for (const event of claimed) this.#start(route, event, until);
      if (claimed.length > 0) continue;
      const next = await table.nextDue(route, now);
      if (next !== null) this.#wakeIn(next - clock.now());
      return;
    }
  }

  /** How many attempts may begin now. */
  #room(): number {
    const { clock, places } = this.#parts;
    const now = clock.now();
    let others = 0;
    if (this.#others.count > 0 && now < this.#others.until) {
      others = this.#others.count;
      this.#wakeIn(this.#others.until - now);
    }
    const free = this.#route.concurrent - this.#running - others;
    if (free <= 0) return 0;
    // Another route of the account ends an attempt, and does not know this one.
    if (!places.hasRoom) {
      this.#wakeIn(100);
      return 0;
    }
    if (this.#limiter === null) return free;
    const allowed = this.#limiter.available;
    if (allowed <= 0) this.#wakeIn(this.#limiter.waitMs);
    return Math.min(free, allowed);
  }

  #start(route: Route, event: RoutedEvent, until: number): void {
    const { places } = this.#parts;
    const hasPlace = places.take();
    this.#running += 1;
    void this.#parts.attempt(route, event, until).finally(() => {
      this.#running -= 1;
      if (hasPlace) places.release();
      this.wake();
    });
  }

  #setRate(before: Route | null): void {
    const { rate } = this.#route;
    if (rate === null) this.#limiter = null;
    else if (before?.rate?.limit !== rate.limit || before.rate.periodMs !== rate.periodMs)
      this.#limiter = new RateLimiter(this.#parts.clock, rate.limit, rate.periodMs);
  }

  #wakeIn(delayMs: number): void {
    if (this.#isStopped) return;
    const { clock } = this.#parts;
    const at = clock.now() + Math.min(Math.max(0, delayMs), MAX_TIMER_MS);
    if (at >= this.#wakeAt) return;
    this.#wakeAt = at;
    clearTimer(this.#timer);
    this.#timer = setTimer(
      clock,
      () => {
        this.#wakeAt = Number.POSITIVE_INFINITY;
        this.wake();
      },
      at - clock.now(),
    );
  }
}

/** How long a claim holds. */
function claimMs({ target }: Route): number {
  return CLAIM_MARGIN_MS + (target.kind === "url" ? target.timeoutMs : AGENT_CLAIM_MS);
}

function about({ accountId: account, source, name: route }: Route) {
  return { account, source, route };
}
