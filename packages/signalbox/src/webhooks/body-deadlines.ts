/**
 * Tells bodies that are still arriving when their time is up, with one timer for all of them: they have the same time, so the one that came
 * first is the next to be due. A timer for each request would cost as much as reading it.
 */
class BodyDeadlines {
  readonly #timeoutMs: number;
  /** In order of arrival; the time each is due. */
  readonly #pending = new Map<() => void, number>();
  #isArmed = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Calls `onDue` when the time is up, unless it is removed before. */
  add(onDue: () => void): void {
    this.#pending.set(onDue, performance.now() + this.#timeoutMs);
    if (!this.#isArmed) this.#arm(this.#timeoutMs);
  }

  remove(onDue: () => void): void {
    this.#pending.delete(onDue);
  }

  #arm(ms: number): void {
    this.#isArmed = true;
    setTimeout(() => this.#check(), Math.ceil(ms)).unref();
  }

  #check(): void {
    this.#isArmed = false;
    const now = performance.now();
    for (const [onDue, at] of this.#pending) {
      if (at > now) {
        this.#arm(at - now);
        return;
      }
      this.#pending.delete(onDue);
      onDue();
    }
  }
}

/** The service has one limit; tests have a few. */
const byTimeout = new Map<number, BodyDeadlines>();

export function deadlinesOf(timeoutMs: number): BodyDeadlines {
  let deadlines = byTimeout.get(timeoutMs);
  if (deadlines === undefined) {
    deadlines = new BodyDeadlines(timeoutMs);
    byTimeout.set(timeoutMs, deadlines);
  }
  return deadlines;
}
