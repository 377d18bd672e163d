/**
 * Limits the entries of refused writes per caller and minute. A caller without permission could otherwise fill the disk with refusals. Refusals
 * beyond the limit are counted, and one entry states their number.
 */
const WINDOW_MS = 60_000;
const MAX_PER_CALLER = 300;
/** Callers that are counted at a time. Beyond it, all further callers share one budget. */
const MAX_CALLERS = 10_000;

export interface Unrecorded {
  readonly accountId: string;
  readonly caller: string;
  readonly count: number;
}

interface Count {
  readonly accountId: string;
  used: number;
  unrecorded: number;
}

export class RefusalBudget {
  #counts = new Map<string, Count>();
  #windowEnd = 0;
  #ended: Unrecorded[] = [];

  /** Returns false if the refusal is only counted. */
  take(accountId: string, caller: string, now: number): boolean {
    // A clock that was set back by more than a window starts a new one, too.
    if (now >= this.#windowEnd || now < this.#windowEnd - WINDOW_MS) this.#begin(now);
    const known = this.#counts.get(caller);
    const name = known !== undefined || this.#counts.size < MAX_CALLERS ? caller : "";
    const count = known ??
      this.#counts.get(name) ?? { accountId: name === "" ? "" : accountId, used: 0, unrecorded: 0 };
    this.#counts.set(name, count);
    if (count.used < MAX_PER_CALLER) {
      count.used += 1;
      return true;
    }
    count.unrecorded += 1;
    return false;
  }

  /** Returns the refusals that were only counted, once, after their minute has passed; at the stop with `isLast` at once. */
  takeUnrecorded(now: number, isLast = false): Unrecorded[] {
    if (isLast || now >= this.#windowEnd) this.#begin(now);
    const ended = this.#ended;
    this.#ended = [];
    return ended;
  }

  #begin(now: number): void {
    for (const [caller, { accountId, unrecorded }] of this.#counts) {
      if (unrecorded > 0) this.#ended.push({ accountId, caller, count: unrecorded });
    }
    this.#counts = new Map();
    this.#windowEnd = now + WINDOW_MS;
  }
}
