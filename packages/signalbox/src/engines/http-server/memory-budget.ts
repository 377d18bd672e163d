/**
 * The memory that bodies of many requests share: request bodies while they arrive and until their request ends, answers that have to be in memory
 * as a whole, and optional copies.
 *
 * Invariants:
 * 1. Never more than `max` bytes are in use, and no holder takes everything (`core/shared-pool.ts`). A body that does not fit is refused;
 *    optional copies are not made.
 * 2. Optional copies use at most half of the budget, so that slow readers of long responses cannot keep new requests out.
 * 3. A body that makes no progress is cut: always when it is slower than `MIN_BYTES_PER_SECOND` over `stallMs`, or not complete after
 *    `totalMs`; and as soon as its holder needs room, after `EVICT_AFTER_MS` without a byte, longest wait first. A pause of this process, in which it read
 *    nothing, does not count.
 */
import { type Placed, PlaceList } from "../../core/place-list.ts";
import { Share, SharedPool } from "../../core/shared-pool.ts";

/** A hundredth of what a poor mobile connection carries. */
const MIN_BYTES_PER_SECOND = 1024;
/** Longer than any pause of a working connection: lost packets are sent again after some hundred milliseconds. */
const EVICT_AFTER_MS = 2000;
/** The longest time between two checks of arriving bodies. */
const CHECK_MS = 1000;
/** A check that is late by so much follows a pause of this process. */
const MIN_PAUSE_MS = 500;

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
  readonly share: MemoryShare;
  /** Ends the upload: must call `settle` and release its memory. */
  readonly cut: () => void;

  constructor(now: number, share: MemoryShare, cut: () => void) {
    this.startedAt = now;
    this.lastByteAt = now;
    this.windowStart = now;
    this.share = share;
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

/** What one holder uses of the budget. */
export class MemoryShare extends Share {
  readonly #budget: MemoryBudget;

  constructor(budget: MemoryBudget) {
    super(budget);
    this.#budget = budget;
  }

  /** True when a body counts as arriving from its headers on, and not from its second piece. */
  get hasTotalTime(): boolean {
    return this.#budget.hasTotalTime;
  }

  override take(bytes: number, isSmall = false): boolean {
    return super.take(bytes, isSmall) || this.#makeRoom(bytes, isSmall);
  }

  /** For optional copies. */
  takeSpare(bytes: number): boolean {
    return this.#budget.used + bytes <= this.#budget.max / 2 && super.take(bytes, false);
  }

  /** Watches an arriving body until `settle`. */
  watch(cut: () => void): Upload {
    return this.#budget.watch(this, cut);
  }

  settle(upload: Upload): void {
    this.#budget.settle(upload);
  }

  #makeRoom(bytes: number, isSmall: boolean): boolean {
    for (const upload of this.#budget.stalledOf(this)) {
      upload.cut();
      if (super.take(bytes, isSmall)) return true;
    }
    return false;
  }
}

export class MemoryBudget extends SharedPool<MemoryShare> {
  readonly #stallMs: number;
  readonly #totalMs: number;
  readonly #uploads = new PlaceList<Upload>();
  #uploadCount = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #checkMs: number;
  #checkedAt = 0;

  constructor({ maxBytes, stallMs, totalMs = Infinity }: MemoryBudgetOptions) {
    super(maxBytes, () => new MemoryShare(this));
    this.#stallMs = stallMs;
    this.#totalMs = totalMs;
    this.#checkMs = Math.min(CHECK_MS, stallMs, totalMs);
  }

  get hasTotalTime(): boolean {
    return this.#totalMs !== Infinity;
  }

  /** For shares. */
  watch(share: MemoryShare, cut: () => void): Upload {
    const upload = new Upload(performance.now(), share, cut);
    this.#uploads.add(upload);
    this.#uploadCount += 1;
    if (this.#timer === undefined) {
      this.#checkedAt = performance.now();
      this.#timer = setInterval(() => this.#check(), this.#checkMs).unref();
    }
    return upload;
  }

  /** For shares. */
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

  /** For shares: the bodies of a holder that may be cut when it needs room, longest wait first. */
  stalledOf(share: MemoryShare): Upload[] {
    const before = performance.now() - EVICT_AFTER_MS;
    const stalled = this.#uploads
      .all()
      .filter((upload) => upload.share === share && upload.lastByteAt < before);
    return stalled.sort((a, b) => a.lastByteAt - b.lastByteAt);
  }
}
