/**
 * A plain request, and its body as it arrives.
 *
 *   waiting → collecting: `collect()`; the pieces go to the receiver.
 *   waiting → streaming: `body` is read.
 *   waiting, collecting → dropped: the response ended first, or the receiver gave up; the pieces are thrown away.
 *
 * Invariants:
 * 1. Every byte of the body goes to one of the receiver and the stream, in order and once, or is thrown away.
 * 2. While nobody reads, at most `MAX_WAITING_BYTES` and one read of the socket are in memory: then the connection is not read.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { type BodyReceiver, CollectedBody } from "./collected-body.ts";
import { toHeaderRecord } from "./header-record.ts";
import type { HttpRequest } from "./http-exchange.ts";
import type { PlainHead } from "./plain-head.ts";

/** What the buffer of a stream holds in Node. */
const MAX_WAITING_BYTES = 64 * 1024;

/** The connection of a request. */
export interface BodySource {
  readonly socket: Socket;
  pauseBody(): void;
  resumeBody(): void;
}

export class PlainRequest implements HttpRequest {
  method: string;
  url: string;
  readonly rawHeaders: string[];
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly #source: BodySource;
  readonly #length: number;
  /** Bytes of the body that have not arrived. */
  #missing: number;
  #headers: IncomingHttpHeaders | null = null;
  #state: "waiting" | "collecting" | "streaming" | "dropped" = "waiting";
  #isBroken = false;
  #waiting: Buffer[] | null = null;
  #waitingBytes = 0;
  #receiver: BodyReceiver | null = null;
  #collected: CollectedBody | null = null;
  #stream: BodyStream | null = null;

  constructor(head: PlainHead, source: BodySource) {
    this.method = head.method;
    this.url = head.target;
    this.rawHeaders = head.rawHeaders;
    this.#length = head.length;
    this.#missing = head.length;
    this.#source = source;
  }

  get headers(): IncomingHttpHeaders {
    return (this.#headers ??= toHeaderRecord(this.rawHeaders));
  }

  get socket(): Socket {
    return this.#source.socket;
  }

  get complete(): boolean {
    return this.#missing === 0;
  }

  /** For the connection. */
  get missing(): number {
    return this.#missing;
  }

  /** Bytes of the body that have arrived. */
  get received(): number {
    return this.#length - this.#missing;
  }

  get body(): Readable {
    this.#stream ??= this.#openStream();
    return this.#stream;
  }

  collect(receiver: BodyReceiver): boolean {
    if (this.#state !== "waiting" || this.#isBroken) return false;
    this.#state = "collecting";
    this.#receiver = receiver;
    const waiting = this.#takeWaiting();
    for (const piece of waiting) this.#collect(piece);
    if (this.#missing === 0) this.#finishCollecting();
    return true;
  }

  stopCollecting(): void {
    if (this.#state !== "collecting") return;
    this.#receiver = null;
    this.#collected?.drop();
    // The rest is read only if the connection is used again.
    this.#state = "waiting";
    this.#source.pauseBody();
  }

  /** For the connection: the next bytes of the body. */
  receive(piece: Buffer): void {
    this.#missing -= piece.length;
    switch (this.#state) {
      case "collecting":
        this.#collect(piece);
        if (this.#missing === 0) this.#finishCollecting();
        break;
      case "streaming":
        if (this.#stream?.push(piece) === false) this.#source.pauseBody();
        if (this.#missing === 0) this.#stream?.push(null);
        break;
      case "waiting":
        (this.#waiting ??= []).push(piece);
        this.#waitingBytes += piece.length;
        if (this.#waitingBytes >= MAX_WAITING_BYTES) this.#source.pauseBody();
        break;
      default:
    }
  }

  /** For the connection: the response has ended, and the connection will be used again. A body that somebody reads is read on. */
  drop(): void {
    if (this.#state !== "waiting") return;
    this.#state = "dropped";
    this.#takeWaiting();
  }

  /** For the connection: it has ended. */
  breakOff(): void {
    if (this.#missing === 0 || this.#isBroken) return;
    this.#isBroken = true;
    this.#waiting = null;
    this.#collected?.drop();
    const receiver = this.#receiver;
    this.#receiver = null;
    this.#stream?.destroy(brokenOff());
    receiver?.onBroken();
  }

  #collect(piece: Buffer): void {
    const receiver = this.#receiver;
    // A receiver that gave up at an earlier piece.
    if (receiver === null) return;
    // Read first: the memory of a copied piece is freed, and its length is then 0.
    const { length } = piece;
    (this.#collected ??= new CollectedBody()).add(piece, this.#length);
    receiver.onPiece(length);
  }

  #finishCollecting(): void {
    const receiver = this.#receiver;
    this.#receiver = null;
    receiver?.onBody(this.#collected?.take() ?? NOTHING);
  }

  #openStream(): BodyStream {
    const stream = new BodyStream(this.#source);
    if (this.#isBroken) {
      stream.destroy(brokenOff());
      return stream;
    }
    if (this.#state === "waiting") this.#state = "streaming";
    for (const piece of this.#takeWaiting()) stream.push(piece);
    if (this.#missing === 0) stream.push(null);
    return stream;
  }

  #takeWaiting(): readonly Buffer[] {
    const waiting = this.#waiting ?? NO_PIECES;
    this.#waiting = null;
    this.#waitingBytes = 0;
    this.#source.resumeBody();
    return waiting;
  }
}

/** As in node:http, an error without a listener is no failure of the process, and destroying an incomplete body closes the connection. */
class BodyStream extends Readable {
  readonly #source: BodySource;

  constructor(source: BodySource) {
    super({ highWaterMark: MAX_WAITING_BYTES });
    this.#source = source;
  }

  override _read(): void {
    this.#source.resumeBody();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.readableEnded) this.#source.socket.destroy();
    callback(this.listenerCount("error") === 0 ? null : error);
  }
}

function brokenOff(): Error {
  return Object.assign(new Error("the request broke off"), { code: "ECONNRESET" });
}

const NOTHING = Buffer.from("");
const NO_PIECES: readonly Buffer[] = [];
