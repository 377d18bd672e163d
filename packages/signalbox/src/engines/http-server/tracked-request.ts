/**
 * node:http's request with a short way to a small body.
 *
 * As a stream, a body of one piece costs a buffer list, four events and three turns of the queue between the parser and whoever wants
 * it. Here the parser's pieces go straight to a callback, as long as the body's declared length says that it may be kept in memory. Every
 * other body is the stream that it always was.
 */
import { IncomingMessage } from "./node-http.ts";

export interface BodyReceiver {
  /** A piece has arrived and is kept. */
  onPiece(length: number): void;
  onBody(bytes: Buffer): void;
  /** The connection ended before the body did. */
  onBroken(): void;
}

/** Set by node's stream methods when somebody reads; tells its server that nothing is left to be read over. */
interface Consumable {
  _consumed: boolean;
}

export class TrackedRequest extends IncomingMessage {
  #receiver: BodyReceiver | null = null;
  /** The only piece so far, or all of them copied together. */
  #bytes: Buffer | null = null;
  #length = 0;

  /**
   * Gives the whole body to the receiver, at the latest when the connection ends; false when somebody reads the stream already or part
   * of the body is in it, and nothing was done.
   */
  collect(receiver: BodyReceiver): boolean {
    if (this.complete || this.destroyed || this.readableFlowing !== null || this.readableLength > 0) {
      return false;
    }
    this.#receiver = receiver;
    (this as unknown as Consumable)._consumed = true;
    return true;
  }

  /** Drops what was collected. What still comes goes into the stream, which nobody reads, so that soon nothing more is taken. */
  stopCollecting(): void {
    this.#receiver = null;
    this.#drop();
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    const receiver = this.#receiver;
    if (receiver === null) return super.push(chunk, encoding);
    if (chunk !== null) {
      // A piece that was copied has no length any more.
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

  /** Pieces are copied together as they come: lists of small ones would take many times their bytes. */
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

/** Smaller ones are left to the next collection. */
const MIN_FREED_BYTES = 4096;

/**
 * Gives memory back that nothing refers to any more. A collection that would notice comes only when much more is allocated: what uploads
 * that were broken off had taken would stay taken for as long as the server has little to do.
 */
function free({ buffer, byteLength }: Buffer): void {
  if (byteLength < MIN_FREED_BYTES || buffer.byteLength !== byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

const NOTHING = Buffer.alloc(0);
