/**
 * The results of a streaming method: `for await` reads the chunks, `result` is the final value.
 * The protocol has no flow control, so the number of unread chunks is limited.
 */
import { AgentError } from "./agent-error.ts";

/** Maximum number of unread chunks. A reader this far behind does not catch up. */
const MAX_WAITING = 10_000;

type Waiter<Chunk, Result> = {
  resolve(step: IteratorResult<Chunk, Result>): void;
  reject(error: unknown): void;
};

type End<Result> =
  | { readonly kind: "done"; readonly result: Result }
  | { readonly kind: "failed"; readonly error: unknown };

export class CallStream<Chunk, Result = unknown> implements AsyncIterableIterator<Chunk, Result> {
  /** The final value. Rejects if the stream fails or the reader stops early. */
  readonly result: Promise<Result>;
  readonly #waiting: Chunk[] = [];
  readonly #waiters: Waiter<Chunk, Result>[] = [];
  readonly #settle: { resolve(result: Result): void; reject(error: unknown): void };
  readonly #onLeave: () => void;
  #end: End<Result> | null = null;

  /** `onLeave` is called if the reader stops before the end. */
  constructor(onLeave: () => void) {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    // Iteration reports the failure, too; without this handler `result` would be an unhandled rejection.
    promise.catch(() => {});
    this.result = promise;
    this.#settle = { resolve, reject };
    this.#onLeave = onLeave;
  }

  push(chunk: Chunk): void {
    if (this.#end !== null) return;
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) {
      waiter.resolve({ done: false, value: chunk });
    } else if (this.#waiting.length < MAX_WAITING) {
      this.#waiting.push(chunk);
    } else {
      this.#onLeave();
      this.fail(new AgentError("buffer_full", `more than ${MAX_WAITING} results of the stream are unread`));
    }
  }

  finish(result: Result): void {
    if (this.#end !== null) return;
    this.#end = { kind: "done", result };
    this.#settle.resolve(result);
    for (const waiter of this.#waiters.splice(0)) waiter.resolve({ done: true, value: result });
  }

  fail(error: unknown): void {
    if (this.#end !== null) return;
    this.#end = { kind: "failed", error };
    this.#settle.reject(error);
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }

  next(): Promise<IteratorResult<Chunk, Result>> {
    // A chunk may be undefined: JSON omits such a result.
    if (this.#waiting.length > 0) {
      return Promise.resolve({ done: false, value: this.#waiting.shift() as Chunk });
    }
    if (this.#end?.kind === "failed") return Promise.reject(this.#end.error);
    if (this.#end?.kind === "done") return Promise.resolve({ done: true, value: this.#end.result });
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /** The reader leaves the loop: later chunks are ignored. The method continues, because the protocol has no cancellation. */
  return(): Promise<IteratorResult<Chunk, Result>> {
    this.#waiting.length = 0;
    if (this.#end === null) {
      this.#onLeave();
      this.fail(new DOMException("The stream was left before its end", "AbortError"));
    }
    return Promise.resolve({ done: true, value: undefined as Result });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
