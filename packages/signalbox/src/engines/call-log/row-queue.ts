/**
 * Recorded calls that are not on stable storage yet, in pieces of shared memory that are used again once their rows are.
 *
 *   add ─► piece being filled ──takeBatch──► batches that the writer has ──release──► free pieces
 *
 * Invariants:
 * 1. A piece is filled again only when every batch of it has been released.
 * 2. Batches are released in the order in which they were taken.
 * 3. Free memory that is kept is bounded; what a burst took beyond it goes back.
 */
import type { CallRecord } from "./call-log.ts";
import { bodyBytesOf, packedBytes, releaseMemory, type RowBatch, RowPacker } from "./row-batch.ts";

/** About a hundred calls with their bodies. */
const PIECE_BYTES = 256 * 1024;
/** Enough for the rows of two commits, so that under a steady load nothing is allocated. */
const MAX_FREE_PIECES = 24;

/** A batch with the position of its last row. */
export interface QueuedBatch {
  readonly batch: RowBatch;
  readonly bodyBytes: number;
  readonly upTo: number;
}

interface CountedBatch extends QueuedBatch {
  readonly piece: Piece;
}

interface Piece {
  readonly packer: RowPacker;
  /** Made and not released yet. */
  batches: number;
}

export class RowQueue {
  readonly #free: Piece[] = [];
  #filling = newPiece();
  #made: CountedBatch[] = [];
  #taken: CountedBatch[] = [];
  /** Of the last call added, and of the last one released. */
  #added = 0;
  #released = 0;
  #bodyBytes = 0;
  #bodyBytesOfBatch = 0;

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

  /** What was added since the last call, in order. */
  takeBatches(): QueuedBatch[] {
    this.#endBatch();
    const made = this.#made;
    this.#made = [];
    this.#taken.push(...made);
    return made;
  }

  /** Taken and not released, in order: what a new writer must be given again. */
  get unreleased(): readonly QueuedBatch[] {
    return this.#taken;
  }

  /** Every row up to this position is on stable storage. */
  release(upTo: number): void {
    this.#released = upTo;
    let done = 0;
    for (const { piece, bodyBytes, upTo: last } of this.#taken) {
      if (last > upTo) break;
      done += 1;
      this.#bodyBytes -= bodyBytes;
      piece.batches -= 1;
      this.#reuseIfEmpty(piece);
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
    this.#made.push({ batch, piece, upTo: this.#added, bodyBytes: this.#bodyBytesOfBatch });
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

/** For one call that fits into no usual piece. */
function newLargePiece(bytes: number): Piece {
  return { packer: new RowPacker(new ArrayBuffer(Math.ceil(bytes / 8) * 8)), batches: 0 };
}
