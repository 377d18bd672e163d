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
