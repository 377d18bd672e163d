/**
 * node:http's request, with a short path for a small body.
 *
 * As a stream, a body of one piece costs a buffer list, four events and three passes through the task queue between parser and reader. Here the
 * parser's pieces go directly to a callback. Every body that is not collected stays the stream it is in node:http.
 * See docs/decisions/0051.
 */
import { IncomingMessage } from "./node-http.ts";

export interface BodyReceiver {
  /** A piece has arrived and is kept. */
  onPiece(length: number): void;
  onBody(bytes: Buffer): void;
  /** The connection ended before the body did. */
  onBroken(): void;
}

/** Node's stream methods set this when the body is read; its server then does not read the rest of the body after the response. */
interface Consumable {
  _consumed: boolean;
}

export class TrackedRequest extends IncomingMessage {
  #receiver: BodyReceiver | null = null;
  /** The only piece so far, or all pieces copied together. */
  #bytes: Buffer | null = null;
  #length = 0;

  /** Passes the whole body to the receiver. False, with nothing done, when the stream is being read or holds part of the body. */
  collect(receiver: BodyReceiver): boolean {
    if (this.complete || this.destroyed || this.readableFlowing !== null || this.readableLength > 0) {
      return false;
    }
    this.#receiver = receiver;
    (this as unknown as Consumable)._consumed = true;
    return true;
  }

  /** Drops the collected bytes. Later pieces go into the stream; it is not read, so Node soon stops reading the socket. */
  stopCollecting(): void {
    this.#receiver = null;
    this.#drop();
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    const receiver = this.#receiver;
    if (receiver === null) return super.push(chunk, encoding);
    if (chunk !== null) {
      // Read first: the memory of a copied piece is freed, and its length is then 0.
      const { length } = chunk;
      this.#add(chunk);
      receiver.onPiece(length);
      return true;
    }
    this.#receiver = null;
    receiver.onBody(this.#take());
    return true;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const receiver = this.#receiver;
    this.#receiver = null;
    super._destroy(error, callback);
    if (receiver === null) return;
    this.#drop();
    receiver.onBroken();
  }

  /** Pieces are copied together as they arrive: a list of small Buffers takes many times their bytes. */
  #add(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (this.#bytes === null) {
      this.#bytes = chunk;
    } else {
      if (length > this.#bytes.length) this.#grow(length);
      chunk.copy(this.#bytes, this.#length);
      free(chunk);
    }
    this.#length = length;
  }

  #grow(needed: number): void {
    const declared = Number(this.headers["content-length"]);
    const larger = Buffer.allocUnsafeSlow(
      Math.min(declared, Math.max(needed, 2 * (this.#bytes?.length ?? 0))),
    );
    this.#bytes?.copy(larger, 0, 0, this.#length);
    this.#drop();
    this.#bytes = larger;
  }

  #take(): Buffer {
    const bytes = this.#bytes ?? NOTHING;
    const body = bytes.length === this.#length ? bytes : bytes.subarray(0, this.#length);
    this.#bytes = null;
    return body;
  }

  #drop(): void {
    if (this.#bytes !== null) free(this.#bytes);
    this.#bytes = null;
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
