/**
 * Recorded calls that are not durable yet, in pieces of shared memory that are reused.
 *
 *   add ─► piece being filled ──takeBatches──► batches sent to the writer ──release──► free pieces
 *
 * A piece is reused only after all of its batches have been released. Batches are released in the order in which they were taken. The number of
 * free pieces is bounded; memory beyond that, taken in a burst, is freed.
 */
import type { CallRecord } from "./call-log.ts";
import { bodyBytesOf, packedBytes, releaseMemory, type RowBatch, RowPacker } from "./row-batch.ts";

/** About a hundred calls with their bodies. */
const PIECE_BYTES = 256 * 1024;
/** Enough for the rows of two commits, so that a steady load allocates nothing. */
const MAX_FREE_PIECES = 24;

export interface QueuedBatch {
  readonly batch: RowBatch;
  readonly bodyBytes: number;
  /** Position of the last row: the number of calls added up to it. */
  readonly position: number;
}

interface PieceBatch extends QueuedBatch {
  readonly piece: Piece;
}

interface Piece {
  readonly packer: RowPacker;
  /** Batches that are not released yet. */
  batches: number;
}

export class RowQueue {
  readonly #free: Piece[] = [];
  #filling = newPiece();
  /** Batches that are not taken yet. */
  #complete: PieceBatch[] = [];
  #taken: PieceBatch[] = [];
  #added = 0;
  #released = 0;
  #bodyBytes = 0;
  #bodyBytesOfBatch = 0;

  /** Position of the last call added. */
  get added(): number {
    return this.#added;
  }

  get length(): number {
    return this.#added - this.#released;
  }

  get bodyBytes(): number {
    return this.#bodyBytes;
  }

  add(call: CallRecord): void {
    if (!this.#filling.packer.hasRoomFor(call)) this.#startPiece(packedBytes(call));
    this.#filling.packer.add(call);
    this.#added += 1;
    const bytes = bodyBytesOf(call);
    this.#bodyBytes += bytes;
    this.#bodyBytesOfBatch += bytes;
  }

  /** The calls added since the last take, in order. */
  takeBatches(): QueuedBatch[] {
    this.#endBatch();
    const batches = this.#complete;
    this.#complete = [];
    this.#taken.push(...batches);
    return batches;
  }

  /** Batches that were taken and not released, in order: a new writer gets them again. */
  get unreleased(): readonly QueuedBatch[] {
    return this.#taken;
  }

  /** Frees every row up to the position: the rows are durable. */
  release(position: number): void {
    this.#released = position;
    let done = 0;
    for (const batch of this.#taken) {
      if (batch.position > position) break;
      done += 1;
      this.#bodyBytes -= batch.bodyBytes;
      batch.piece.batches -= 1;
      this.#reuseIfEmpty(batch.piece);
    }
    this.#taken = this.#taken.slice(done);
  }

  #startPiece(neededBytes: number): void {
    this.#endBatch();
    const last = this.#filling;
    this.#filling = neededBytes > PIECE_BYTES ? newLargePiece(neededBytes) : (this.#free.pop() ?? newPiece());
    this.#reuseIfEmpty(last);
  }

  #endBatch(): void {
    const piece = this.#filling;
    const batch = piece.packer.takeBatch();
    if (batch === null) return;
    piece.batches += 1;
    this.#complete.push({ batch, piece, position: this.#added, bodyBytes: this.#bodyBytesOfBatch });
    this.#bodyBytesOfBatch = 0;
  }

  #reuseIfEmpty(piece: Piece): void {
    if (piece === this.#filling || piece.batches > 0) return;
    const { packer } = piece;
    if (packer.memory.byteLength !== PIECE_BYTES) {
      releaseMemory(packer.memory);
    } else if (this.#free.length < MAX_FREE_PIECES) {
      packer.clear();
      this.#free.push(piece);
    }
  }
}

function newPiece(): Piece {
  return { packer: new RowPacker(new SharedArrayBuffer(PIECE_BYTES)), batches: 0 };
}

/** For one call that does not fit into a shared piece. */
function newLargePiece(bytes: number): Piece {
  return { packer: new RowPacker(new ArrayBuffer(Math.ceil(bytes / 8) * 8)), batches: 0 };
}

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
  /** The reason of a stall in which no commit and no failure is reported. */
  readonly silenceReason: string;
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
    this.#timer ??= setTimeout(() => this.failed(this.#options.silenceReason), MAX_WAIT_MS).unref();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
