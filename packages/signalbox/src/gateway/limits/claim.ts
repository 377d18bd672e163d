/** What one call needs of several shared buckets: all amounts, or none. */
import type { SignalboxError } from "@signalbox/protocol";
import { describeRefusal, refuse, type Refusal } from "./limit-refusal.ts";
import type { LimitRule, Need } from "./limit-rule.ts";
import type { SharedBucket } from "./shared-bucket.ts";

export interface ClaimPart {
  readonly rule: LimitRule;
  readonly bucket: SharedBucket;
  readonly need: Need;
  /** A budget of a route, which refuses nothing. */
  readonly isForced: boolean;
}

/** How long a call waits for amounts that other nodes have taken and not used: they give them back within 100 ms, unless they hang. */
const MAX_WAIT_MS = 3000;
/** Answers of the database arrive more often than that; what is longer between two of them is a pause of this process, and its peers had none of the time. */
const MAX_STEP_MS = 500;

export class Claim {
  readonly parts: readonly ClaimPart[];
  readonly ready: Promise<void>;
  /** The first statement that has to answer. */
  readonly from: number;
  state: "waiting" | "granted" | "refused" | "ended" = "waiting";
  /** Why a rule has no room. */
  refusal: Refusal | null = null;
  /** Why the rules could not be checked. */
  error: SignalboxError | null = null;
  readonly #resolve: () => void;
  /** When the last answer was seen, and how long the claim has waited, pauses left out. */
  #seenAt = performance.now();
  #waitedMs = 0;

  constructor(parts: readonly ClaimPart[], from: number) {
    this.parts = parts;
    this.from = from;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ready = promise;
    this.#resolve = resolve;
    for (const { bucket } of parts) bucket.waiting += 1;
  }

  /** Decides, as far as the last answers of the database allow it. */
  decide(now: number): void {
    let refusal: Refusal | null = null;
    let late: Refusal | null = null;
    let isShort = false;
    for (const { rule, bucket, need, isForced } of this.parts) {
      if (bucket.answeredBy < this.from) {
        isShort = true;
        continue;
      }
      if (bucket.canTake(need, isForced, now)) continue;
      if (isForced) {
        isShort = true;
        continue;
      }
      const refused = refuse(rule, bucket, need, now);
      if (refused === null) {
        // It would fit if other nodes gave back what they have not used.
        isShort = true;
        late = describeRefusal(rule, bucket, need, now);
        // Of several exhausted rules, `retry-after` follows the one with the longest wait.
      } else if (refused.waitMs > (refusal?.waitMs ?? -1)) refusal = refused;
    }
    const seenAt = performance.now();
    this.#waitedMs += Math.min(seenAt - this.#seenAt, MAX_STEP_MS);
    this.#seenAt = seenAt;
    if (refusal === null && isShort && late !== null && this.#waitedMs > MAX_WAIT_MS) refusal = late;
    if (refusal !== null) {
      this.refusal = refusal;
      this.#end("refused");
    } else if (!isShort) {
      for (const { bucket, need } of this.parts) bucket.take(need, now);
      this.#end("granted");
    }
  }

  fail(error: SignalboxError): void {
    this.error = error;
    this.#end("refused");
  }

  /** The call has ended before it knew the answer. */
  cancel(): void {
    if (this.state === "waiting") this.#end("ended");
    else if (this.state === "granted") this.release();
  }

  /** Gives back what is held. A request that was counted stays counted. */
  release(): void {
    this.state = "ended";
    for (const { bucket, need } of this.parts) if (bucket.kind !== "requests") bucket.release(need);
  }

  #end(state: "granted" | "refused" | "ended"): void {
    this.state = state;
    for (const { bucket } of this.parts) bucket.waiting -= 1;
    this.#resolve();
  }
}
