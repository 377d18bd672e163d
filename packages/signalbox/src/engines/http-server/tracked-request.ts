/**
 * node:http's request, with a short path for a small body.
 *
 * As a stream, a body of one piece costs a buffer list, four events and three passes through the task queue between parser and reader. Here the
 * parser's pieces go directly to a callback. Every body that is not collected stays the stream it is in node:http.
 * A body in tiny chunks is read in turns with other connections.
 * See docs/decisions/0051.
 */
import { type BodyReceiver, CollectedBody } from "./collected-body.ts";
import type { HttpRequest } from "./http-exchange.ts";
import { IncomingMessage } from "./node-http.ts";

/** A body whose pieces are as small costs its processor time for each piece, and not for each byte. */
const SMALL_BYTES = 64;
/** So many of them take a millisecond or two. */
const MAX_SMALL_PIECES = 1024;

/** Node's stream methods set this when the body is read; its server then does not read the rest of the body after the response. */
interface Consumable {
  _consumed: boolean;
}

export class TrackedRequest extends IncomingMessage implements HttpRequest {
  #receiver: BodyReceiver | null = null;
  #collected: CollectedBody | null = null;
  #smallPieces = 0;
  #resting: NodeJS.Immediate | null = null;

  /** The request itself. */
  get body(): this {
    return this;
  }

  /** Passes the whole body to the receiver. False, with nothing done, when the stream is being read or holds part of the body. */
  collect(receiver: BodyReceiver): boolean {
    if (this.complete || this.destroyed || this.readableFlowing !== null || this.readableLength > 0) {
      return false;
    }
    this.#receiver = receiver;
    this.#collected = new CollectedBody();
    (this as unknown as Consumable)._consumed = true;
    return true;
  }

  /** Drops the collected bytes. Later pieces go into the stream; it is not read, so Node soon stops reading the socket. */
  stopCollecting(): void {
    this.#receiver = null;
    this.#collected?.drop();
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    const receiver = this.#receiver;
    if (receiver === null) {
      if (chunk !== null && chunk.length <= SMALL_BYTES && ++this.#smallPieces === MAX_SMALL_PIECES)
        this.#rest();
      return super.push(chunk, encoding);
    }
    if (chunk !== null) {
      // Read first: the memory of a copied piece is freed, and its length is then 0.
      const { length } = chunk;
      this.#collected?.add(chunk, Number(this.headers["content-length"]));
      receiver.onPiece(length);
      return true;
    }
    this.#receiver = null;
    receiver.onBody(this.#collected?.take() ?? NOTHING);
    return true;
  }

  /** Node would go on with the next read of the socket. */
  override _read(size: number): void {
    if (this.#resting === null) super._read(size);
  }

  /**
   * Reads no more of the connection until the event loop has polled the others: libuv reads a socket 32 times in a row, 2 MB, which are 350,000 chunks
   * of a byte and half a second.
   */
  #rest(): void {
    this.#smallPieces = 0;
    // A socket that is paused already was started again by its own stream: node:http stops it at the event.
    if (this.socket.isPaused()) this.socket.emit("pause");
    else this.socket.pause();
    this.#resting ??= setImmediate(() => {
      this.#resting = null;
      if (!this.destroyed) super._read(0);
    });
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const receiver = this.#receiver;
    this.#receiver = null;
    super._destroy(error, callback);
    if (receiver === null) return;
    this.#collected?.drop();
    receiver.onBroken();
  }
}

const NOTHING = Buffer.from("");
