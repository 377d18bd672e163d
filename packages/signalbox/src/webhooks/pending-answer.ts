/**
 * The answer to one sender, given within `answerWithinMs`.
 *
 *   waiting ─ the work ends ─────────────────────────────→ answered with its outcome
 *      └ storeAfterMs ─→ storing ─ the work ends ────────→ answered with its outcome
 *                           ├ the delivery is durable ───→ answered 202
 *                           └ answerWithinMs ────────────→ answered 503
 *
 * Invariants:
 * 1. 202 means that the delivery is durable. From then on `LateDeliveries` is responsible for it, also after a restart.
 * 2. An answer does not interrupt the work. The work may succeed after a 503: the instance's ledger then has the delivery, and the sender's
 *    next attempt is answered `duplicate`.
 * 3. A row that was stored after another answer had been given is deleted: the sender has its outcome, or tries again.
 */
import type { Answer, Processed } from "./delivery-record.ts";
import type { LateDeliveries } from "./late-deliveries.ts";
import type { LateDelivery } from "./late-delivery-table.ts";

/** Time reserved for storing a delivery, enough for a slow disk. At most half of `answerWithinMs`. */
const MAX_STORING_MS = 2000;

/** What all answers share; `Delivery` is the intake's own record of a delivery. */
export interface AnswerRules<Delivery> {
  readonly answerWithinMs: number;
  readonly late: LateDeliveries;
  /** The row to store; null while the instance is not known. */
  toLate(delivery: Delivery): LateDelivery | null;
  /** The work has ended, before or after the answer. */
  onDone(delivery: Delivery): void;
  /** Exactly one of the following is called, once. An error is what the sender is refused with. */
  onEnd(delivery: Delivery, processed: Processed): Answer;
  onFailure(delivery: Delivery, error: unknown): unknown;
  onStored(delivery: Delivery): Answer;
  onTimeUp(delivery: Delivery): unknown;
}

export class PendingAnswer<Delivery> {
  readonly #rules: AnswerRules<Delivery>;
  readonly #delivery: Delivery;
  readonly #work: Promise<Processed>;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #storingMs: number;
  #timer: NodeJS.Timeout;
  #isOpen = true;

  private constructor(
    rules: AnswerRules<Delivery>,
    delivery: Delivery,
    work: Promise<Processed>,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ) {
    this.#rules = rules;
    this.#delivery = delivery;
    this.#work = work;
    this.#resolve = resolve;
    this.#reject = reject;
    const { answerWithinMs } = rules;
    this.#storingMs = Math.min(MAX_STORING_MS, Math.ceil(answerWithinMs / 2));
    this.#timer = setTimeout(() => this.#store(), answerWithinMs - this.#storingMs).unref();
    work.then(
      (processed) => this.#end(processed),
      (error: unknown) => this.#fail(error),
    );
  }

  /** Rejects with the error that the sender is refused with. */
  static of<Delivery>(
    rules: AnswerRules<Delivery>,
    delivery: Delivery,
    work: Promise<Processed>,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      new PendingAnswer(rules, delivery, work, resolve, reject);
    });
  }

  #end(processed: Processed): void {
    clearTimeout(this.#timer);
    this.#rules.onDone(this.#delivery);
    if (this.#close()) this.#resolve(this.#rules.onEnd(this.#delivery, processed));
  }

  #fail(error: unknown): void {
    clearTimeout(this.#timer);
    this.#rules.onDone(this.#delivery);
    if (this.#close()) this.#reject(this.#rules.onFailure(this.#delivery, error));
  }

  #store(): void {
    const { late } = this.#rules;
    this.#timer = setTimeout(() => {
      if (this.#close()) this.#reject(this.#rules.onTimeUp(this.#delivery));
    }, this.#storingMs).unref();
    const row = this.#rules.toLate(this.#delivery);
    if (row === null) return;
    late.store(row).then(
      () => {
        if (!this.#close()) return late.takeBack(row);
        late.settle(
          row,
          this.#work.then(({ outcome }) => outcome),
        );
        this.#resolve(this.#rules.onStored(this.#delivery));
      },
      () => {
        // The delivery cannot be stored. Its work may still end in time; otherwise the sender is answered 503.
      },
    );
  }

  /** True for the first caller: only that one answers. */
  #close(): boolean {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    return wasOpen;
  }
}
