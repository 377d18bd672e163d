/**
 * Tells bodies that are still arriving when their time is up, with one timer for all of them: a timer for each request would cost as much as
 * reading it. It is set for the one that is due first at that moment; most are gone by then.
 */
import { type Placed, PlaceList } from "../core/place-list.ts";

export interface Deadline {
  /** The body is here, or will never be. */
  cancel(): void;
}

class PendingBody implements Deadline, Placed {
  place = -1;
  readonly dueAt: number;
  readonly onDue: () => void;
  readonly #pending: PlaceList<PendingBody>;
  #isPending = true;

  constructor(pending: PlaceList<PendingBody>, dueAt: number, onDue: () => void) {
    this.#pending = pending;
    this.dueAt = dueAt;
    this.onDue = onDue;
    pending.add(this);
  }

  cancel(): void {
    if (!this.#isPending) return;
    this.#isPending = false;
    this.#pending.delete(this);
  }
}

class BodyDeadlines {
  readonly #timeoutMs: number;
  readonly #pending = new PlaceList<PendingBody>();
  #isArmed = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Calls `onDue` when the time is up, unless it is cancelled before. */
  add(onDue: () => void): Deadline {
    if (!this.#isArmed) this.#arm(this.#timeoutMs);
    return new PendingBody(this.#pending, performance.now() + this.#timeoutMs, onDue);
  }

  #arm(ms: number): void {
    this.#isArmed = true;
    setTimeout(() => this.#check(), Math.ceil(ms)).unref();
  }

  #check(): void {
    this.#isArmed = false;
    const now = performance.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const body of this.#pending.all()) {
      if (body.dueAt > now) nextAt = Math.min(nextAt, body.dueAt);
      else {
        body.cancel();
        body.onDue();
      }
    }
    if (nextAt < Number.POSITIVE_INFINITY && !this.#isArmed) this.#arm(nextAt - now);
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
