/**
 * Admission to the queue of the call log.
 *
 *   writing ──a commit failed, or none came while callers waited──► stalled ──a commit──► writing
 *
 * Writing: callers wait while the queue is full, and no row is lost. Stalled: no caller waits, and rows that find the queue full are dropped and
 * counted, because a disk that stays full for a day must not stop the calls of that day. A stall is reported when it begins and then once a
 * minute, whatever the number of attempts.
 */

/** How long callers wait for a commit before the log counts as stalled: longer than a busy disk takes, shorter than clients wait. */
const MAX_WAIT_MS = 10_000;
const REPORT_INTERVAL_MS = 60_000;

export interface QueueRoomOptions {
  /** Number of rows that fit; 0 if the queue is full. */
  readonly free: () => number;
  readonly onStall: (error: Error) => void;
  readonly onRecovery: (droppedCalls: number) => void;
}

export class QueueRoom {
  readonly #options: QueueRoomOptions;
  #waiters: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #stall: string | null = null;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #dropped = 0;
  #droppedBefore = 0;

  constructor(options: QueueRoomOptions) {
    this.#options = options;
  }

  /** Why rows cannot be written; null while they can. */
  get stall(): string | null {
    return this.#stall;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** True if a caller need not wait. */
  get isOpen(): boolean {
    return this.#stall !== null || this.#options.free() > 0;
  }

  /** Resolves when the caller may go on. */
  wait(): Promise<void> {
    if (this.isOpen) return Promise.resolve();
    this.#startTimer();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** False if the row must be dropped; the row is then counted. */
  admits(): boolean {
    if (this.#stall === null || this.#options.free() > 0) return true;
    this.#dropped += 1;
    return false;
  }

  /** A commit failed. */
  failed(reason: string): Error {
    this.#stall = reason;
    const error = new Error(`calls cannot be written and wait for the next attempt: ${reason}`);
    const now = performance.now();
    if (now - this.#reportedAt >= REPORT_INTERVAL_MS) {
      this.#reportedAt = now;
      this.#options.onStall(error);
    }
    this.#stopTimer();
    for (const resolve of this.#waiters.splice(0)) resolve();
    return error;
  }

  /** A commit succeeded. */
  committed(): void {
    this.#stopTimer();
    if (this.#stall !== null) {
      this.#stall = null;
      this.#reportedAt = Number.NEGATIVE_INFINITY;
      this.#options.onRecovery(this.#dropped - this.#droppedBefore);
      this.#droppedBefore = this.#dropped;
    }
    // As many callers go on as rows fit; the others keep their order.
    for (const resolve of this.#waiters.splice(0, this.#options.free())) resolve();
    if (this.#waiters.length > 0) this.#startTimer();
  }

  close(): void {
    this.#stopTimer();
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => this.failed("the disk does not respond"), MAX_WAIT_MS).unref();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
