/**
 * Requests that take long. A client does not wait for them beyond its patience, so that one node that hangs does not stop all clients. Their
 * answers count when they arrive: what a node says after a pause must be as true as what it says at once.
 */
import { setTimeout as sleep } from "node:timers/promises";

/** Above most answers, below the shortest take-over of an instance. */
const PATIENCE_MS = 1500;
const MAX_PATIENCE_MS = 12_000;
/** A client with so many open requests waits for them, so that a busy machine is not flooded. */
const MAX_WAITING = 8;

export class LateAnswers {
  readonly #waiting = new Set<Promise<unknown>>();

  /** Resolves with the answer, or with undefined when the patience has ended, which is longer for repeated requests. */
  async soon<T>(answer: Promise<T>, repetition = 0): Promise<T | undefined> {
    const patience = new AbortController();
    const waiting = answer.finally(() => {
      this.#waiting.delete(waiting);
      patience.abort();
    });
    this.#waiting.add(waiting);
    const patienceMs = Math.min(MAX_PATIENCE_MS, PATIENCE_MS * 2 ** repetition);
    const late = sleep(patienceMs, undefined, { signal: patience.signal }).catch(() => undefined);
    const first = await Promise.race([waiting, late]);
    if (this.#waiting.size >= MAX_WAITING) await Promise.race(this.#waiting);
    return first;
  }

  /** Resolves when every answer has arrived. */
  async all(): Promise<void> {
    while (this.#waiting.size > 0) await Promise.all(this.#waiting);
  }
}
