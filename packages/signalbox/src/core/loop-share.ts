/**
 * A share of the event loop for work in bulk: many steps of which nothing else has to wait for more than a moment, such as loading thousands of
 * instances whose work is due at once.
 *
 * Invariants:
 * 1. In one iteration of the event loop steps begin for at most `budgetMs`, counted from the first of them, and at least one step begins: however slow the
 *    steps and the machine are, the work goes on.
 * 2. Everything that a step does without waiting for I/O counts: each step begins in a macrotask of its own, when the microtasks of the step before it
 *    have run. (A promise that is resolved at once is not enough: the steps would interleave, and the clock would be read before their work is done.)
 * 3. Holders (accounts, for example) take turns; the steps of one begin in the order in which they were asked for. Without steps that wait nothing is
 *    scheduled.
 */

/** A request needs some iterations of the loop; with this share each of them takes a few milliseconds longer while there is work in bulk. */
const BUDGET_MS = 2;
/** Macrotasks that are queued for an iteration: few enough to cost nothing, and so many that steps of a tenth of a millisecond use the budget. */
const STEPS = 20;

export class LoopShare {
  readonly #budgetMs: number;
  readonly #now: () => number;
  /** By holder, in the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isScheduled = false;
  #begunAt = 0;

  constructor(budgetMs = BUDGET_MS, now: () => number = () => performance.now()) {
    this.#budgetMs = budgetMs;
    this.#now = now;
  }

  /** Resolves when the next step may begin. */
  step(holder = ""): Promise<void> {
    return new Promise((resolve) => {
      const steps = this.#waiting.get(holder);
      if (steps === undefined) this.#waiting.set(holder, [resolve]);
      else steps.push(resolve);
      if (!this.#isScheduled) this.#schedule();
    });
  }

  /** Immediates that are queued now all belong to the next iteration, and microtasks run between them. */
  #schedule(): void {
    this.#isScheduled = true;
    setImmediate(() => {
      this.#begunAt = this.#now();
      this.#begin();
    });
    for (let i = 1; i < STEPS; i++) setImmediate(() => this.#next());
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#waiting.size > 0) this.#schedule();
    });
  }

  #next(): void {
    if (this.#waiting.size > 0 && this.#now() - this.#begunAt < this.#budgetMs) this.#begin();
  }

  #begin(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [holder, steps] = first;
    const begin = steps.shift();
    // The holder's next step follows those of the others.
    this.#waiting.delete(holder);
    if (steps.length > 0) this.#waiting.set(holder, steps);
    begin?.();
  }
}
