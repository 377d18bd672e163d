/**
 * The memory that bodies of many requests share: request bodies while they arrive and until their request ends, and optional copies.
 *
 * Invariants:
 * 1. Never more than `max` bytes are in use. A request body that does not fit is refused; optional copies are not made.
 * 2. Optional copies use at most half of the budget, so that slow readers of long responses cannot keep new requests out.
 * 3. A body that makes no progress is cut: always when it is slower than `MIN_BYTES_PER_SECOND` over `stallMs`, or not complete after
 *    `totalMs`; and as soon as room is needed, after `EVICT_AFTER_MS` without a byte, longest wait first. A pause of this process, in which it read
 *    nothing, does not count.
 */
import { type Placed, PlaceList } from "../../core/place-list.ts";

/** A hundredth of what a poor mobile connection carries. */
const MIN_BYTES_PER_SECOND = 1024;
/** Longer than any pause of a working connection: lost packets are sent again after some hundred milliseconds. */
const EVICT_AFTER_MS = 2000;
/** The longest time between two checks of arriving bodies. */
const CHECK_MS = 1000;
/** A check that is late by so much follows a pause of this process. */
const MIN_PAUSE_MS = 500;

/** A number of things of which at most `max` are in use. The owner of what was taken releases it. */
export class Limit {
  readonly max: number;
  #used = 0;

  constructor(max: number) {
    this.max = max;
  }

  get used(): number {
    return this.#used;
  }

  hasRoomFor(count: number): boolean {
    return this.#used + count <= this.max;
  }

  /** Takes `count` until it is released. Returns false, without effect, if the limit would be exceeded. */
  take(count = 1): boolean {
    if (!this.hasRoomFor(count)) return false;
    this.#used += count;
    return true;
  }

  release(count = 1): void {
    this.#used -= count;
  }
}

export interface MemoryBudgetOptions {
  readonly maxBytes: number;
  /** A body slower than `MIN_BYTES_PER_SECOND` over this time is cut. */
  readonly stallMs: number;
  /** A body must be complete within this time. Default: only the limit of the listener. */
  readonly totalMs?: number;
}

/** A body that is arriving. */
export class Upload implements Placed {
  place = -1;
  startedAt: number;
  lastByteAt: number;
  windowStart: number;
  windowBytes = 0;
  /** Ends the upload: must call `settle` and release its memory. */
  readonly cut: () => void;

  constructor(now: number, cut: () => void) {
    this.startedAt = now;
    this.lastByteAt = now;
    this.windowStart = now;
    this.cut = cut;
  }

  /** As if everything had happened later. */
  postpone(ms: number): void {
    this.startedAt += ms;
    this.lastByteAt += ms;
    this.windowStart += ms;
  }

  progress(bytes: number): void {
    this.lastByteAt = performance.now();
    this.windowBytes += bytes;
  }
}

export class MemoryBudget extends Limit {
  readonly #stallMs: number;
  readonly #totalMs: number;
  readonly #uploads = new PlaceList<Upload>();
  #uploadCount = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #checkMs: number;
  #checkedAt = 0;

  constructor({ maxBytes, stallMs, totalMs = Infinity }: MemoryBudgetOptions) {
    super(maxBytes);
    this.#stallMs = stallMs;
    this.#totalMs = totalMs;
    this.#checkMs = Math.min(CHECK_MS, stallMs, totalMs);
  }

  /** True when a body counts as arriving from its headers on, and not from its second piece. */
  get hasTotalTime(): boolean {
    return this.#totalMs !== Infinity;
  }

  override take(bytes: number): boolean {
    return super.take(bytes) || (this.#makeRoom(bytes) && super.take(bytes));
  }

  /** For optional copies. */
  takeSpare(bytes: number): boolean {
    return this.used + bytes <= this.max / 2 && super.take(bytes);
  }

  /** Watches an arriving body until `settle`. */
  watch(cut: () => void): Upload {
    const upload = new Upload(performance.now(), cut);
    this.#uploads.add(upload);
    this.#uploadCount += 1;
    if (this.#timer === undefined) {
      this.#checkedAt = performance.now();
      this.#timer = setInterval(() => this.#check(), this.#checkMs).unref();
    }
    return upload;
  }

  settle(upload: Upload): void {
    this.#uploads.delete(upload);
    this.#uploadCount -= 1;
  }

  #check(): void {
    if (this.#uploadCount === 0) {
      // Stopped here, not by the last upload: otherwise a steady flow of small bodies would start and stop the timer with each of them.
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const now = performance.now();
    // After a pause, timers run before the sockets are read.
    const lateMs = now - this.#checkedAt - this.#checkMs;
    this.#checkedAt = now;
    if (lateMs > MIN_PAUSE_MS) for (const upload of this.#uploads.all()) upload.postpone(lateMs);
    for (const upload of this.#uploads.all()) {
      const windowMs = now - upload.windowStart;
      if (now - upload.lastByteAt >= this.#stallMs || now - upload.startedAt >= this.#totalMs) {
        upload.cut();
      } else if (windowMs >= this.#stallMs) {
        if (upload.windowBytes < (windowMs / 1000) * MIN_BYTES_PER_SECOND) upload.cut();
        upload.windowStart = now;
        upload.windowBytes = 0;
      }
    }
  }

  #makeRoom(bytes: number): boolean {
    const before = performance.now() - EVICT_AFTER_MS;
    const stalled = this.#uploads.all().filter(({ lastByteAt }) => lastByteAt < before);
    stalled.sort((a, b) => a.lastByteAt - b.lastByteAt);
    for (const upload of stalled) {
      upload.cut();
      if (this.hasRoomFor(bytes)) return true;
    }
    return false;
  }
}
