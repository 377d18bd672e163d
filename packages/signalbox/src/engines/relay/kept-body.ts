/**
 * Keeps the beginning of a response body, for a log or a cache.
 *
 * Chunks are copied together as they arrive: they are slices of slabs that many calls share, and a long stream that keeps a hundred
 * small slices would keep all those slabs in memory. A body that arrives in one chunk is not copied. Copies are counted against a
 * budget; when it is exhausted, the rest of the body is not kept.
 */
const FIRST_BYTES = 4096;
const NO_BYTES = Buffer.alloc(0);

/** The budget that kept bytes are counted against. */
export interface SpareMemory {
  /** False when there is no room; nothing is taken then. */
  takeSpare(bytes: number): boolean;
  release(bytes: number): void;
}

export class KeptBody {
  readonly #memory: SpareMemory;
  #maxBytes: number;
  #bytes: Buffer = NO_BYTES;
  /** Bytes taken from the budget. */
  #taken = 0;
  #length = 0;
  #isWhole = true;

  constructor(maxBytes: number, memory: SpareMemory) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  /** False when bytes of the body were not kept. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  add(chunk: Buffer, isLast: boolean): void {
    const room = this.#maxBytes - this.#length;
    if (chunk.length > room) this.#isWhole = false;
    if (room <= 0) return;
    const part = chunk.length > room ? chunk.subarray(0, room) : chunk;
    if (isLast && this.#length === 0) {
      this.#bytes = part;
    } else if (this.#grow(this.#length + part.length)) {
      part.copy(this.#bytes, this.#length);
    } else {
      this.#isWhole = false;
      this.#maxBytes = this.#length;
      return;
    }
    this.#length += part.length;
  }

  /** The kept bytes; later additions may write into their memory. */
  get bytes(): Buffer {
    return this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length);
  }

  /** Returns the kept bytes, and gives their memory back to the budget. */
  take(): Buffer {
    const { bytes } = this;
    this.#bytes = NO_BYTES;
    this.#length = 0;
    this.#memory.release(this.#taken);
    this.#taken = 0;
    return bytes;
  }

  /** False when the budget has no room. */
  #grow(needed: number): boolean {
    if (needed <= this.#bytes.length) return true;
    const size = Math.min(this.#maxBytes, Math.max(needed, this.#bytes.length * 2, FIRST_BYTES));
    const more = size - this.#taken;
    if (!this.#memory.takeSpare(more)) return false;
    this.#taken += more;
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    return true;
  }
}
