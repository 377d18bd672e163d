/**
 * The overload rule of all areas: a limit is fixed, work above it is refused at once with 503 and `Retry-After`, and accepted work is never
 * dropped. Each limit has one owner, which releases what it took. No request is queued for a limit.
 */
import { SignalboxError } from "@signalbox/protocol";

/** Long enough for a burst to end, and short compared to the retry schedules of webhook providers. */
const RETRY_AFTER_SECONDS = "2";

export class Limit {
  readonly max: number;
  #used = 0;

  constructor(max: number) {
    this.max = max;
  }

  get used(): number {
    return this.#used;
  }

  hasRoomFor(count: number): boolean {
    return this.#used + count <= this.max;
  }

  /** Takes `count` until it is released. Returns false, without effect, if the limit would be exceeded. */
  take(count = 1): boolean {
    if (!this.hasRoomFor(count)) return false;
    this.#used += count;
    return true;
  }

  release(count = 1): void {
    this.#used -= count;
  }
}

/** Creates the error for refused work. `message` names the limit; `headers` are added to the response. */
export function overloaded(message?: string, headers: Readonly<Record<string, string>> = {}): SignalboxError {
  return new SignalboxError("overloaded", {
    ...(message === undefined ? {} : { message }),
    headers: { "retry-after": RETRY_AFTER_SECONDS, ...headers },
  });
}
