/**
 * Requests that take long. A client does not wait for them beyond its patience, so that one node that hangs does not stop all clients. Their
 * answers count when they arrive: what a node says after a pause must be as true as what it says at once.
 */
import { setTimeout as sleep } from "node:timers/promises";

/** Above most answers, below the shortest take-over of an instance. */
const PATIENCE_MS = 1500;

export class LateAnswers {
  readonly #waiting = new Set<Promise<unknown>>();

  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves with the answer, or with undefined when the patience has ended. */
  async soon<T>(answer: Promise<T>): Promise<T | undefined> {
    const patience = new AbortController();
    const waiting = answer.finally(() => {
      this.#waiting.delete(waiting);
      patience.abort();
    });
    this.#waiting.add(waiting);
    const late = sleep(PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => undefined);
    return Promise.race([waiting, late]);
  }

  /** Resolves when every answer has arrived. */
  async all(): Promise<void> {
    while (this.#waiting.size > 0) await Promise.all(this.#waiting);
  }
}
