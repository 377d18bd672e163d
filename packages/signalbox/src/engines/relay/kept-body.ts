/**
 * The beginning of a response's body, kept for the log or the cache.
 *
 * Pieces are copied together as they come, but for a body that came in one: what is passed to the client is cut from memory that many calls
 * share, and a stream that holds on to a hundred small pieces for minutes would hold on to all that memory. The copies count against the
 * budget of all bodies; where it has no room, no more is kept.
 */

const FIRST_BYTES = 4096;
const NOTHING = Buffer.alloc(0);

/** A budget of memory for copies that are optional. */
export interface SpareMemory {
  takeSpare(bytes: number): boolean;
  release(bytes: number): void;
}

export class KeptBody {
  readonly #budget: SpareMemory;
  #maxBytes: number;
  #bytes: Buffer = NOTHING;
  /** Bytes taken of the budget. */
  #taken = 0;
  #length = 0;
  #isWhole = true;

  constructor(maxBytes: number, budget: SpareMemory) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
  }

  /** False once something had to be left out. */
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

  /** What was kept; nothing is kept any more afterwards. */
  take(): Buffer {
    const bytes = this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    this.#budget.release(this.#taken);
    this.#taken = 0;
    return bytes;
  }

  /** False when the budget has no room. */
  #grow(needed: number): boolean {
    if (needed <= this.#bytes.length) return true;
    const size = Math.min(this.#maxBytes, Math.max(needed, this.#bytes.length * 2, FIRST_BYTES));
    const more = size - this.#taken;
    if (!this.#budget.takeSpare(more)) return false;
    this.#taken += more;
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    return true;
  }
}
