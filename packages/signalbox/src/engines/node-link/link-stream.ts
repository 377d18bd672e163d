/**
 * One stream of a link: bytes in both directions, with a window for each.
 *
 *   open ──end (own side)──► half closed ──end (other side)──► closed
 *     └───────────reset by either side, or the link breaks───────► closed (failed)
 *
 * Invariants:
 * 1. A side sends at most `WINDOW_BYTES` that the other side has not consumed. What `write` gets beyond that waits here.
 * 2. A consumer that is paused receives nothing, and its side returns no credit: at most one window is held for it.
 * 3. `onEnd` or `onFailure` is the last event, and exactly one of them is emitted. After `reset` no event follows.
 */
import type { LinkFailure } from "./link-failure.ts";

/** Enough for a round trip of 2 ms at 1 Gbit/s. */
export const WINDOW_BYTES = 256 * 1024;
/** Credit is returned in portions of this size: one frame for many small ones. */
const CREDIT_BYTES = WINDOW_BYTES / 4;
/** A DATA frame is at most this long, so that one stream does not delay the others. */
const MAX_DATA_BYTES = 64 * 1024;

export interface StreamHandler {
  onData(bytes: Buffer): void;
  /** The other side sends no more. */
  onEnd(): void;
  onFailure(failure: LinkFailure): void;
  /** The bytes that `write` kept have been sent. */
  onDrain?(): void;
}

/** What a stream needs of its link. */
export interface StreamOutput {
  data(stream: number, bytes: Uint8Array): void;
  window(stream: number, bytes: number): void;
  end(stream: number): void;
  reset(stream: number, failure: LinkFailure | null): void;
  /** The stream is closed in both directions. */
  closed(stream: number): void;
}

export class LinkStream {
  readonly id: number;
  readonly #output: StreamOutput;
  #handler: StreamHandler | null = null;
  #sendCredit = WINDOW_BYTES;
  #receiveCredit = WINDOW_BYTES;
  #unreturned = 0;
  #waiting: Uint8Array[] = [];
  #received: Buffer[] = [];
  #isPaused = true;
  #isEnding = false;
  #sentEnd = false;
  #gotEnd = false;
  #isEndDelivered = false;
  #needsDrain = false;
  #isClosed = false;
  #failure: LinkFailure | null = null;

  constructor(id: number, output: StreamOutput) {
    this.id = id;
    this.#output = output;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Events that arrived before are delivered at once. */
  start(handler: StreamHandler): void {
    this.#handler = handler;
    this.resume();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#deliver();
  }

  /** Returns false if the bytes wait for credit: the caller should wait for `onDrain`. The bytes must not change afterwards. */
  write(bytes: Uint8Array): boolean {
    if (this.#isClosed || this.#isEnding || bytes.length === 0) return !this.#isClosed;
    this.#waiting.push(bytes);
    this.#send();
    this.#needsDrain = this.#waiting.length > 0;
    return !this.#needsDrain;
  }

  /** No more data from this side, after the bytes that wait. */
  end(): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#isEnding = true;
    this.#send();
  }

  /** Ends the stream at once; the other side gets `failure`, or a cancellation. */
  reset(failure: LinkFailure | null = null): void {
    if (this.#isClosed) return;
    this.#output.reset(this.id, failure);
    this.#close();
  }

  /** A DATA frame arrived. Returns false if the other side exceeded its window. */
  receive(bytes: Buffer): boolean {
    if (this.#isClosed || this.#gotEnd) return true;
    this.#receiveCredit -= bytes.length;
    if (this.#receiveCredit < 0) return false;
    this.#received.push(bytes);
    this.#deliver();
    return true;
  }

  receiveWindow(bytes: number): void {
    this.#sendCredit += bytes;
    this.#send();
  }

  receiveEnd(): void {
    this.#gotEnd = true;
    this.#deliver();
  }

  /** The other side reset the stream, or the link broke. */
  fail(failure: LinkFailure): void {
    // All bytes of both sides have been sent: a consumer that is paused has received everything, and reads it at its own pace.
    if (this.#isClosed || (this.#gotEnd && this.#sentEnd)) return;
    this.#failure = failure;
    this.#waiting = [];
    // Without a handler the failure waits for `start`.
    if (this.#handler === null) return;
    this.#close();
    this.#handler.onFailure(failure);
  }

  #deliver(): void {
    const handler = this.#handler;
    if (handler === null) return;
    while (!this.#isPaused && !this.#isClosed) {
      const bytes = this.#received.shift();
      if (bytes === undefined) break;
      this.#returnCredit(bytes.length);
      handler.onData(bytes);
    }
    if (this.#isPaused || this.#isClosed || this.#received.length > 0) return;
    if (this.#failure !== null) {
      this.#close();
      handler.onFailure(this.#failure);
    } else if (this.#gotEnd && !this.#isEndDelivered) {
      this.#isEndDelivered = true;
      if (this.#sentEnd) this.#close();
      handler.onEnd();
    }
  }

  #returnCredit(bytes: number): void {
    this.#receiveCredit += bytes;
    this.#unreturned += bytes;
    if (this.#unreturned < CREDIT_BYTES || this.#gotEnd) return;
    this.#output.window(this.id, this.#unreturned);
    this.#unreturned = 0;
  }

  #send(): void {
    while (this.#sendCredit > 0) {
      const [bytes] = this.#waiting;
      if (bytes === undefined) break;
      const part = bytes.subarray(0, Math.min(this.#sendCredit, MAX_DATA_BYTES));
      this.#output.data(this.id, part);
      this.#sendCredit -= part.length;
      if (part.length === bytes.length) this.#waiting.shift();
      else this.#waiting[0] = bytes.subarray(part.length);
    }
    if (this.#waiting.length > 0 || this.#isClosed) return;
    if (this.#isEnding && !this.#sentEnd) {
      this.#sentEnd = true;
      this.#output.end(this.id);
      if (this.#isEndDelivered) this.#close();
    } else if (this.#needsDrain) {
      this.#needsDrain = false;
      this.#handler?.onDrain?.();
    }
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting = [];
    this.#received = [];
    this.#output.closed(this.id);
  }
}
