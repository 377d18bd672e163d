/** A call that waits for PostgreSQL, because this node does not have all amounts that the call needs: it gets all of them, or none. */
import type { SignalboxError } from "@signalbox/protocol";
import type { Need } from "./grant.ts";
import { describeRefusal, refuse, Refusal } from "./limit-refusal.ts";
import type { SharedBucket } from "./shared-bucket.ts";

export interface SharedNeed extends Need {
  readonly bucket: SharedBucket;
}

/** How long a call waits for amounts that other nodes have taken and not used: they give them back within 100 ms, unless they hang. */
const MAX_WAIT_MS = 3000;
/** Answers of the database arrive more often than that; what is longer between two of them is a pause of this process, and its peers had none of the time. */
const MAX_STEP_MS = 500;

export class Claim {
  readonly needs: readonly SharedNeed[];
  /** The first statement that has to answer. */
  readonly from: number;
  /** Null: the amounts are taken. Never rejects. */
  readonly decided: Promise<Refusal | null>;
  readonly #resolve: (refusal: Refusal | null) => void;
  #isWaiting = true;
  /** When the last answer was seen, and how long the claim has waited, pauses left out. */
  #seenAt = performance.now();
  #waitedMs = 0;

  constructor(needs: readonly SharedNeed[], from: number) {
    this.needs = needs;
    this.from = from;
    const { promise, resolve } = Promise.withResolvers<Refusal | null>();
    this.decided = promise;
    this.#resolve = resolve;
    for (const { bucket } of needs) bucket.waiting += 1;
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Decides, as far as the last answers of the database allow it. */
  decide(now: number): void {
    let refusal: Refusal | null = null;
    let late: Refusal | null = null;
    let isShort = false;
    for (const need of this.needs) {
      const { bucket, isForced } = need;
      if (bucket.answeredBy < this.from) {
        isShort = true;
        continue;
      }
      if (bucket.canTake(need, now)) continue;
      if (isForced) {
        isShort = true;
        continue;
      }
      const refused = refuse(need, now, now);
      if (refused === null) {
        // It would fit if other nodes gave back what they have not used.
        isShort = true;
        late = describeRefusal(need, now, now);
        // Of several exhausted rules, `retry-after` follows the one with the longest wait.
      } else if (refused.waitMs > (refusal?.waitMs ?? -1)) refusal = refused;
    }
    const seenAt = performance.now();
    this.#waitedMs += Math.min(seenAt - this.#seenAt, MAX_STEP_MS);
    this.#seenAt = seenAt;
    if (refusal === null && isShort && late !== null && this.#waitedMs > MAX_WAIT_MS) refusal = late;
    if (refusal !== null) this.#end(refusal);
    else if (!isShort) {
      for (const need of this.needs) need.bucket.take(need, now);
      this.#end(null);
    }
  }

  /** The limits cannot be checked. */
  fail(error: SignalboxError): void {
    this.#end(Refusal.unchecked(error));
  }

  #end(refusal: Refusal | null): void {
    this.#isWaiting = false;
    for (const { bucket } of this.needs) bucket.waiting -= 1;
    this.#resolve(refusal);
  }
}
