/**
 * One sender that waits for its answer, and never longer than it may.
 *
 *   waiting ─ the work ends ─────────────────────────────→ answered with its outcome
 *      └ storeAfterMs ─→ storing ─ the work ends ────────→ answered with its outcome
 *                           ├ the delivery is durable ───→ answered 202
 *                           └ answerWithinMs ────────────→ answered 503
 *
 * Invariants:
 * 1. 202 means that the delivery is on stable storage; from then on `LateDeliveries` sees to it, whatever becomes of this process.
 * 2. The work is not interrupted by an answer. After a 503 it may still end well: the instance's ledger has the delivery then, and the
 *    sender's next try is answered `duplicate`.
 * 3. A row that was stored too late for its answer is taken back: the sender has its outcome, or tries again.
 */
import { Deadlines } from "./deadlines.ts";
import type { Answer, Processed } from "./delivery-result.ts";
import type { LateDeliveries } from "./late-deliveries.ts";
import type { LateDelivery } from "./late-delivery-table.ts";

/** Time kept for storing a delivery whose work takes too long: enough for a slow disk. At most half of all the time there is. */
const MAX_STORING_MS = 2000;

export interface AnswerTimes {
  readonly storing: Deadlines;
  readonly last: Deadlines;
}

export function answerTimes(answerWithinMs: number): AnswerTimes {
  const storingMs = Math.min(MAX_STORING_MS, Math.ceil(answerWithinMs / 2));
  return { storing: new Deadlines(answerWithinMs - storingMs), last: new Deadlines(storingMs) };
}

/** What answers have in common; `About` is what each knows of its delivery. */
export interface AnswerBook<About> {
  readonly times: AnswerTimes;
  readonly late: LateDeliveries;
  /** What is stored; null when it cannot be yet. */
  toLate(about: About): LateDelivery | null;
  /** The work has ended, whether or not somebody still waits. */
  onDone(about: About): void;
  /** One of the rest is called, once, for the answer that is given; an error is what the sender is refused with. */
  onEnd(about: About, processed: Processed): Answer;
  onFailure(about: About, error: unknown): unknown;
  onStored(about: About): Answer;
  onTimeUp(about: About): unknown;
}

export class PendingAnswer<About> {
  readonly #book: AnswerBook<About>;
  readonly #about: About;
  readonly #work: Promise<Processed>;
  readonly #resolve: (answer: Answer) => void;
  readonly #reject: (error: unknown) => void;
  #deadline: { cancel(): void };
  #isOpen = true;

  private constructor(
    book: AnswerBook<About>,
    about: About,
    work: Promise<Processed>,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ) {
    this.#book = book;
    this.#about = about;
    this.#work = work;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadline = book.times.storing.add(() => this.#store());
    work.then(
      (processed) => this.#end(processed),
      (error: unknown) => this.#fail(error),
    );
  }

  /** The answer to give, in time. */
  static of<About>(book: AnswerBook<About>, about: About, work: Promise<Processed>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      new PendingAnswer(book, about, work, resolve, reject);
    });
  }

  #end(processed: Processed): void {
    this.#deadline.cancel();
    this.#book.onDone(this.#about);
    if (this.#close()) this.#resolve(this.#book.onEnd(this.#about, processed));
  }

  #fail(error: unknown): void {
    this.#deadline.cancel();
    this.#book.onDone(this.#about);
    if (this.#close()) this.#reject(this.#book.onFailure(this.#about, error));
  }

  #store(): void {
    const { late, times } = this.#book;
    this.#deadline = times.last.add(() => {
      if (this.#close()) this.#reject(this.#book.onTimeUp(this.#about));
    });
    const delivery = this.#book.toLate(this.#about);
    if (delivery === null) return;
    late.store(delivery).then(
      () => {
        if (!this.#close()) return late.takeBack(delivery);
        late.settle(
          delivery,
          this.#work.then(({ outcome }) => outcome),
        );
        this.#resolve(this.#book.onStored(this.#about));
      },
      () => {
        // There is no room or no disk for it: the work may still end in time, else the sender is told to come back.
      },
    );
  }

  /** True for the first to ask: only that one answers. */
  #close(): boolean {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    return wasOpen;
  }
}
