/**
 * The memory that bodies may take, all calls together: request bodies while they arrive and until their call has ended, and what is kept
 * of responses for the log and the cache.
 *
 * Invariants:
 * 1. Never more than `maxBytes` is taken. A request body that does not fit is refused; of a response less is kept.
 * 2. Kept responses take at most half, so that slow readers of long answers cannot shut the door to new calls.
 * 3. A body that does not progress is cut: always when it is slower than `MIN_BYTES_PER_SECOND` over `stallMs`, and when room is needed
 *    already after `EVICT_AFTER_MS` without a byte, the longest wait first. So room is held by those who send, not by those who hold.
 */
import { SignalboxError } from "@signalbox/protocol";
import { type Placed, PlaceList } from "../../core/place-list.ts";
import type { MemoryBudget } from "../../http/request-context.ts";

/** A hundredth of what a poor mobile connection carries. */
const MIN_BYTES_PER_SECOND = 1024;
/** Longer than any pause of a connection that works, as packets are sent again after some hundred milliseconds. */
const EVICT_AFTER_MS = 2000;
/** Beside a piece's bytes: its buffer object, and its place in lists. A body may come in pieces of one byte. */
export const PIECE_OVERHEAD_BYTES = 256;
/** For room to be made: by calls that end, or by bodies that are cut. */
const RETRY_AFTER_SECONDS = "2";

/** A body that has begun to arrive and is not whole. */
export class Upload implements Placed {
  place = -1;
  lastByteAt: number;
  windowStart: number;
  windowBytes = 0;
  readonly cut: (reason: SignalboxError) => void;

  constructor(now: number, cut: (reason: SignalboxError) => void) {
    this.lastByteAt = now;
    this.windowStart = now;
    this.cut = cut;
  }

  progress(bytes: number): void {
    this.lastByteAt = performance.now();
    this.windowBytes += bytes;
  }
}

export class BodyBudget implements MemoryBudget {
  readonly maxBytes: number;
  readonly #stallMs: number;
  readonly #uploads = new PlaceList<Upload>();
  #uploadCount = 0;
  #used = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(maxBytes: number, stallMs: number) {
    this.maxBytes = maxBytes;
    this.#stallMs = stallMs;
  }

  get usedBytes(): number {
    return this.#used;
  }

  take(bytes: number): boolean {
    if (this.#used + bytes > this.maxBytes && !this.#makeRoom(bytes)) return false;
    this.#used += bytes;
    return true;
  }

  /** For what is good to have and not needed. */
  takeSpare(bytes: number): boolean {
    if (this.#used + bytes > this.maxBytes / 2) return false;
    this.#used += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#used -= bytes;
  }

  /** Watches a body that is arriving, until `settle`. `cut` must settle it and give its memory back. */
  watch(cut: (reason: SignalboxError) => void): Upload {
    const upload = new Upload(performance.now(), cut);
    this.#uploads.add(upload);
    this.#uploadCount += 1;
    this.#timer ??= setInterval(() => this.#sweep(), Math.min(1000, this.#stallMs)).unref();
    return upload;
  }

  settle(upload: Upload): void {
    this.#uploads.delete(upload);
    this.#uploadCount -= 1;
  }

  #sweep(): void {
    if (this.#uploadCount === 0) {
      // Here and not with the last upload: most bodies arrive whole, and would each pay for a timer.
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const now = performance.now();
    for (const upload of this.#uploads.all()) {
      const windowMs = now - upload.windowStart;
      if (now - upload.lastByteAt >= this.#stallMs) {
        upload.cut(tooSlow());
      } else if (windowMs >= this.#stallMs) {
        if (upload.windowBytes < (windowMs / 1000) * MIN_BYTES_PER_SECOND) upload.cut(tooSlow());
        upload.windowStart = now;
        upload.windowBytes = 0;
      }
    }
  }

  #makeRoom(bytes: number): boolean {
    const before = performance.now() - EVICT_AFTER_MS;
    const waiting = this.#uploads.all().filter(({ lastByteAt }) => lastByteAt < before);
    waiting.sort((a, b) => a.lastByteAt - b.lastByteAt);
    for (const upload of waiting) {
      upload.cut(tooSlow());
      if (this.#used + bytes <= this.maxBytes) return true;
    }
    return false;
  }
}

function tooSlow(): SignalboxError {
  return new SignalboxError("request_timeout", {
    message: "The request body came too slowly",
    headers: { connection: "close" },
  });
}

/** No room for a request body. */
export function noRoom(): SignalboxError {
  return new SignalboxError("overloaded", {
    headers: { "retry-after": RETRY_AFTER_SECONDS, connection: "close" },
  });
}
