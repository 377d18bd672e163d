/** A body that is collected in one Buffer. Pieces are copied together as they arrive: a list of small Buffers takes many times their bytes. */

export interface BodyReceiver {
  /** A piece has arrived and is kept. */
  onPiece(length: number): void;
  onBody(bytes: Buffer): void;
  /** The connection ended before the body did. */
  onBroken(): void;
}

export class CollectedBody {
  /** The only piece so far, or all pieces copied together. */
  #bytes: Buffer | null = null;
  #length = 0;

  /** `declared`: the length of the whole body. */
  add(chunk: Buffer, declared: number): void {
    const length = this.#length + chunk.length;
    if (this.#bytes === null) {
      this.#bytes = chunk;
    } else {
      if (length > this.#bytes.length) this.#grow(length, declared);
      chunk.copy(this.#bytes, this.#length);
      free(chunk);
    }
    this.#length = length;
  }

  take(): Buffer {
    const bytes = this.#bytes ?? NOTHING;
    const body = bytes.length === this.#length ? bytes : bytes.subarray(0, this.#length);
    this.#bytes = null;
    this.#length = 0;
    return body;
  }

  drop(): void {
    if (this.#bytes !== null) free(this.#bytes);
    this.#bytes = null;
    this.#length = 0;
  }

  #grow(needed: number, declared: number): void {
    const larger = Buffer.allocUnsafeSlow(
      Math.min(declared, Math.max(needed, 2 * (this.#bytes?.length ?? 0))),
    );
    this.#bytes?.copy(larger, 0, 0, this.#length);
    if (this.#bytes !== null) free(this.#bytes);
    this.#bytes = larger;
  }
}

/** Smaller buffers are left to the garbage collector. */
const MIN_FREED_BYTES = 4096;

/**
 * Frees the memory of a Buffer immediately. The garbage collector runs only after many more allocations: on an idle server the memory of aborted
 * uploads would stay allocated for a long time.
 */
function free({ buffer, byteLength }: Buffer): void {
  if (byteLength < MIN_FREED_BYTES || buffer.byteLength !== byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

const NOTHING = Buffer.alloc(0);
