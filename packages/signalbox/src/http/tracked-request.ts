/**
 * node:http's request with a short way to a small body.
 *
 * As a stream, a body of one piece costs a buffer list, four events and three turns of the queue between the parser and whoever wants
 * it. Here the parser's pieces go straight to a callback, as long as the body's declared length says that it may be kept in memory. Every
 * other body is the stream that it always was.
 */
import { IncomingMessage } from "../core/node-http.ts";

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
  #first: Buffer | null = null;
  #more: Buffer[] | null = null;

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
    this.#first = null;
    this.#more = null;
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    const receiver = this.#receiver;
    if (receiver === null) return super.push(chunk, encoding);
    if (chunk !== null) {
      if (this.#first === null) this.#first = chunk;
      else (this.#more ??= []).push(chunk);
      receiver.onPiece(chunk.length);
      return true;
    }
    this.#receiver = null;
    receiver.onBody(this.#takeBody());
    return true;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const receiver = this.#receiver;
    this.#receiver = null;
    super._destroy(error, callback);
    receiver?.onBroken();
  }

  #takeBody(): Buffer {
    const first = this.#first ?? NOTHING;
    const body = this.#more === null ? first : Buffer.concat([first, ...this.#more]);
    this.#first = null;
    this.#more = null;
    return body;
  }
}

const NOTHING = Buffer.alloc(0);
