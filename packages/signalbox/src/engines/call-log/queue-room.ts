/**
 * Who may put a row into the queue of the call log, and what becomes of the others.
 *
 *   writing ──a commit failed, or none came while callers waited──► stalled ──a commit──► writing
 *
 * Invariants:
 * 1. While the log is written, a full queue slows callers down and no row is lost.
 * 2. While it is stalled, nobody waits: rows that find the queue full are dropped and counted. A disk that stays full for a day must not
 *    hold up the calls of that day.
 * 3. A stall is reported when it begins and then once in a while, however often the writer tries.
 */

/** How long callers wait for a commit before the log counts as stalled: far longer than a busy disk takes, and less than clients do. */
const MAX_WAIT_MS = 10_000;
const REPORT_MS = 60_000;

export interface QueueRoomOptions {
  /** How many more rows fit; 0 when the queue is full. */
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

  /** Why nothing is written; null while the log is. */
  get stall(): string | null {
    return this.#stall;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** True when a caller may go on now. */
  get isOpen(): boolean {
    return this.#stall !== null || this.#options.free() > 0;
  }

  /** Resolves once the caller may go on. */
  wait(): Promise<void> {
    if (this.isOpen) return Promise.resolve();
    this.#arm();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** False when the row is dropped. */
  admits(): boolean {
    if (this.#stall === null || this.#options.free() > 0) return true;
    this.#dropped += 1;
    return false;
  }

  stalled(reason: string): Error {
    this.#stall = reason;
    const error = new Error(`calls cannot be written, trying again: ${reason}`);
    const now = performance.now();
    if (now - this.#reportedAt >= REPORT_MS) {
      this.#reportedAt = now;
      this.#options.onStall(error);
    }
    this.#disarm();
    for (const resolve of this.#waiters.splice(0)) resolve();
    return error;
  }

  committed(): void {
    this.#disarm();
    if (this.#stall !== null) {
      this.#stall = null;
      this.#reportedAt = Number.NEGATIVE_INFINITY;
      this.#options.onRecovery(this.#dropped - this.#droppedBefore);
      this.#droppedBefore = this.#dropped;
    }
    // As many go on as there is room for; the others stay in line.
    for (const resolve of this.#waiters.splice(0, this.#options.free())) resolve();
    if (this.#waiters.length > 0) this.#arm();
  }

  close(): void {
    this.#disarm();
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => this.stalled("the disk does not answer"), MAX_WAIT_MS).unref();
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
