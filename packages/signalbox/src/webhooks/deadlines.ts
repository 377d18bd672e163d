/**
 * Tells bodies that are still arriving, and senders that wait for an answer, when their time is up, with one timer for all that have the same
 * limit: a timer for each request would cost as much as reading it. It is set for the one that is due first at that moment; most are gone by
 * then.
 */
import { type Placed, PlaceList } from "../core/place-list.ts";

export interface Deadline {
  /** What was waited for is here, or will never be. */
  cancel(): void;
}

class Pending implements Deadline, Placed {
  place = -1;
  readonly dueAt: number;
  readonly onDue: () => void;
  readonly #pending: PlaceList<Pending>;
  #isPending = true;

  constructor(pending: PlaceList<Pending>, dueAt: number, onDue: () => void) {
    this.#pending = pending;
    this.dueAt = dueAt;
    this.onDue = onDue;
    pending.add(this);
  }

  /** True when it was pending. */
  cancel(): boolean {
    if (!this.#isPending) return false;
    this.#isPending = false;
    this.#pending.delete(this);
    return true;
  }
}

export class Deadlines {
  readonly #timeoutMs: number;
  readonly #pending = new PlaceList<Pending>();
  #isArmed = false;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Calls `onDue` when the time is up, unless it is cancelled before. */
  add(onDue: () => void): Deadline {
    if (!this.#isArmed) this.#arm(this.#timeoutMs);
    return new Pending(this.#pending, performance.now() + this.#timeoutMs, onDue);
  }

  #arm(ms: number): void {
    this.#isArmed = true;
    setTimeout(() => this.#check(), Math.ceil(ms)).unref();
  }

  #check(): void {
    this.#isArmed = false;
    const now = performance.now();
    let nextAt = Number.POSITIVE_INFINITY;
    for (const one of this.#pending.all()) {
      if (one.dueAt > now) nextAt = Math.min(nextAt, one.dueAt);
      else if (one.cancel()) {
        one.onDue();
      }
    }
    if (nextAt < Number.POSITIVE_INFINITY && !this.#isArmed) this.#arm(nextAt - now);
  }
}

/** The service has a few limits; tests have some more. */
const byTimeout = new Map<number, Deadlines>();

export function deadlinesOf(timeoutMs: number): Deadlines {
  let deadlines = byTimeout.get(timeoutMs);
  if (deadlines === undefined) {
    deadlines = new Deadlines(timeoutMs);
    byTimeout.set(timeoutMs, deadlines);
  }
  return deadlines;
}
