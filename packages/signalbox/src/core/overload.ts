/**
 * The one rule for too much work: a limit is fixed, work beyond it is refused at once with 503 and `Retry-After`, and accepted work is never
 * dropped. Each limit has an owner that releases what it took; nothing waits in line for room.
 */
import { SignalboxError } from "@signalbox/protocol";

/** Long enough for a burst to pass, short against the retry schedule of every webhook provider. */
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

  /** False when there is no room; otherwise `count` is in use until it is released. */
  take(count = 1): boolean {
    if (!this.hasRoomFor(count)) return false;
    this.#used += count;
    return true;
  }

  release(count = 1): void {
    this.#used -= count;
  }
}

/** The refusal. `message` names the limit that was reached; `headers` are added to the answer. */
export function overloaded(message?: string, headers: Readonly<Record<string, string>> = {}): SignalboxError {
  return new SignalboxError("overloaded", {
    ...(message === undefined ? {} : { message }),
    headers: { "retry-after": RETRY_AFTER_SECONDS, ...headers },
  });
}
