/**
 * The clock of a test: it stands still, and `advance` moves it from one due timer to the next.
 *
 * 1. A timer sees the time it was set for, however far the clock is moved.
 * 2. Before the clock moves, the work of the previous timers has ended: `settle` waits for it.
 * 3. Calls of `advance` run one after the other.
 */
import type { Clock, ManualTimer } from "../core/clock.ts";

class TestTimer implements ManualTimer {
  readonly at: number;
  readonly callback: () => void;
  readonly #owner: Set<TestTimer>;

  constructor(at: number, callback: () => void, owner: Set<TestTimer>) {
    this.at = at;
    this.callback = callback;
    this.#owner = owner;
    owner.add(this);
  }

  /** True if the timer was still set. */
  cancel(): boolean {
    return this.#owner.delete(this);
  }
}

export class TestClock implements Clock {
  readonly #timers = new Set<TestTimer>();
  #now: number;
  #advancing: Promise<void> = Promise.resolve();

  constructor(now: number) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  setTimer(callback: () => void, delayMs: number): ManualTimer {
    const timer = new TestTimer(this.#now + Math.max(0, Math.ceil(delayMs)), callback, this.#timers);
    // Due at once: it must not wait for the next move of the clock.
    if (timer.at <= this.#now)
      setImmediate(() => {
        if (timer.cancel()) callback();
      });
    return timer;
  }

  /** True while a timer is due that has not been called. */
  get hasDue(): boolean {
    return this.#dueBy(this.#now) !== undefined;
  }

  /** Timers of a service that has ended. */
  clear(): void {
    this.#timers.clear();
  }

  advance(ms: number, settle: () => Promise<void>): Promise<void> {
    if (!Number.isFinite(ms) || ms < 0) throw new RangeError(`expected milliseconds from 0, found ${ms}`);
    const advanced = this.#advancing.then(() => this.#advanceTo(this.#now + ms, settle));
    // The caller has the failure; the next move only waits for the end of this one.
    this.#advancing = advanced.catch(() => undefined);
    return advanced;
  }

  async #advanceTo(target: number, settle: () => Promise<void>): Promise<void> {
    await settle();
    for (let next = this.#dueBy(target); next !== undefined; next = this.#dueBy(target)) {
      this.#now = Math.max(this.#now, next.at);
      if (next.cancel()) next.callback();
      await settle();
    }
    this.#now = target;
  }

  #dueBy(time: number): TestTimer | undefined {
    let first: TestTimer | undefined;
    for (const timer of this.#timers)
      if (timer.at <= time && (first === undefined || timer.at < first.at)) first = timer;
    return first;
  }
}
