/**
 * A connection whose requests are parsed here, as long as they are plain (`plain-head.ts`). At the first one that is not, the connection goes to
 * node:http with every byte of that request, and stays there.
 *
 *   reading → leaving: a request is not plain, while responses to earlier ones are due.
 *   reading, leaving → gone: the connection belongs to node:http.
 *   any → closing: a response or a refusal is the last one; no further request is read.
 *
 * Invariants:
 * 1. Requests are handled as they arrive, also pipelined ones; their responses are sent in the order of the requests.
 * 2. node:http gets a connection only between two requests, with nothing left to send, and no byte is seen by both parsers.
 * 3. No more than `MAX_UNANSWERED` requests are without a complete response; a client that exceeds it is cut.
 * 4. What a connection holds is bounded: a head up to `maxHeadBytes`, what a request holds of its body, one read of the socket, and what a
 *    response has written beyond the high-water mark.
 */
import type { Socket } from "node:net";
import { isSlow } from "./connection-room.ts";
import { sendFinalAnswer } from "./final-answer.ts";
import type { HttpApplication, ListenerRefusal } from "./application.ts";
import type { Placed } from "../../core/place-list.ts";
import { INCOMPLETE, OTHER, type PlainHead, readPlainHead } from "./plain-head.ts";
import { type BodySource, PlainRequest } from "./plain-request.ts";
import { type Outlet, PlainResponse } from "./plain-response.ts";
import { type ListenerState, MAX_UNANSWERED, type Pipeline, Tracking } from "./tracking.ts";

/** Bytes behind a request that is answered, for node:http to read later. With more of them the connection is not read. */
const MAX_HELD_BYTES = 64 * 1024;

/** What all connections of a listener share. */
export interface PlainListener {
  readonly application: HttpApplication;
  readonly state: ListenerState;
  readonly maxHeadBytes: number;
  readonly headerTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly keepAliveLine: string;
  /** Time in which this process was awake. */
  readonly now: number;
  /** True when connections are closed as soon as they are idle. */
  readonly isDrained: boolean;
  /** Runs a task that reads a connection outside of any request: what it schedules must not belong to the turn of an agent that answered one. */
  outside(task: () => void): void;
  /** Passes the connection to node:http. */
  handOver(connection: PlainConnection, socket: Socket, bytes: Buffer): void;
  closed(connection: PlainConnection): void;
}

export class PlainConnection implements Pipeline, BodySource, Outlet, Placed {
  place = -1;
  unanswered = 0;
  latest: Tracking | null = null;
  isClosing = false;
  /** When the connection was opened, became idle, or received the head of the request that is arriving. */
  since: number;
  readonly socket: Socket;
  readonly #listener: PlainListener;
  /** In the order of their requests; the first one may be written. */
  readonly #responses: PlainResponse[] = [];
  /** Its body is arriving. */
  #request: PlainRequest | null = null;
  /** The beginning of a head, or what node:http is to read. */
  #held: Buffer | null = null;
  #isLeaving = false;
  #isFresh = true;
  /** The client sends no further request. */
  #isFinal = false;
  /** Closes the connection. */
  #last: PlainResponse | null = null;
  /** To be sent when earlier responses have been. */
  #refusal: ListenerRefusal | null = null;
  #isBodyPaused = false;
  #isOutputPaused = false;
  #isHeldPaused = false;

  constructor(socket: Socket, listener: PlainListener) {
    this.socket = socket;
    this.#listener = listener;
    this.since = listener.now;
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("drain", this.#onDrain);
    socket.on("error", ignore);
    socket.on("close", this.#onClose);
  }

  get front(): PlainResponse | undefined {
    return this.#responses[0];
  }

  get keepAliveLine(): string {
    return this.#listener.keepAliveLine;
  }

  pauseBody(): void {
    if (this.#isBodyPaused) return;
    this.#isBodyPaused = true;
    this.#settleReading();
  }

  resumeBody(): void {
    if (!this.#isBodyPaused) return;
    this.#isBodyPaused = false;
    this.#settleReading();
  }

  closeAfter(response: PlainResponse): void {
    this.isClosing = true;
    this.#last = response;
  }

  ended(response: PlainResponse): void {
    const { tracking } = response;
    tracking.release();
    this.unanswered -= 1;
    this.#listener.application.ended(response, tracking);
  }

  /** Ends what takes too long. */
  check(now: number): void {
    const { headerTimeoutMs, bodyTimeoutMs, idleTimeoutMs } = this.#listener;
    const age = now - this.since;
    if (this.isClosing) return;
    if (this.#request !== null) {
      if (age >= bodyTimeoutMs) this.#refuse("too_slow");
    } else if (this.#responses.length > 0 || this.#isLeaving) {
      // It waits for this server.
    } else if (this.#held !== null) {
      // node:http has the time limit of heads.
      this.#leave(this.#held);
    } else if (this.#isFresh) {
      if (age >= headerTimeoutMs) this.#refuse("too_slow");
    } else if (age >= idleTimeoutMs) {
      this.socket.destroy();
    }
  }

  /** It waits for a request, the rest of a head, or a body that arrives slowly. */
  isWaiting(now: number): boolean {
    const request = this.#request;
    if (this.isClosing || this.#responses.length > 1) return false;
    if (request === null) return this.#responses.length === 0;
    return !this.#isBodyPaused && isSlow(request.received, now - this.since);
  }

  /** Closes a connection without a request that has had one. */
  closeIfIdle(): void {
    const isIdle = this.#request === null && this.#responses.length === 0 && this.#held === null;
    if (isIdle && !this.#isFresh) this.socket.destroy();
  }

  readonly #onData = (received: Buffer): void => {
    // A refusal was sent, and lingers: the connection is read so that the client gets it, and the request that was refused takes nothing more.
    if (this.#refusal !== null && this.isClosing) return;
    const bytes = this.#held === null ? received : Buffer.concat([this.#held, received]);
    this.#held = null;
    if (this.#isLeaving) this.#hold(bytes);
    else this.#read(bytes);
  };

  #read(bytes: Buffer): void {
    // The memory of a collected piece may be freed; its length is then 0.
    const size = bytes.length;
    let at = 0;
    while (at < size && !this.socket.destroyed) {
      const request = this.#request;
      if (request !== null) {
        const end = Math.min(size, at + request.missing);
        if (end === at + request.missing) this.#request = null;
        request.receive(bytes.subarray(at, end));
        at = end;
        continue;
      }
      if (this.isClosing) return;
      if (this.#isFinal) {
        // As for llhttp: the client said that there would be nothing.
        this.isClosing = true;
        this.#listener.application.malformed();
        return;
      }
      const head = readPlainHead(bytes, at, this.#listener.maxHeadBytes);
      if (head === INCOMPLETE) {
        this.#held = at === 0 ? bytes : bytes.subarray(at);
        return;
      }
      if (head === OTHER) {
        this.#leave(at === 0 ? bytes : bytes.subarray(at));
        return;
      }
      at = head.end;
      this.#begin(head);
    }
    // The end of a body that its response did not wait for.
    if (this.#responses.length === 0 && this.#request === null) this.#becomeIdle();
  }

  #begin(head: PlainHead): void {
    const { application, state, now } = this.#listener;
    if (this.unanswered >= MAX_UNANSWERED) {
      this.socket.destroy();
      return;
    }
    this.unanswered += 1;
    this.#isFresh = false;
    this.since = now;
    const request = new PlainRequest(head, this);
    if (head.length > 0) this.#request = request;
    const tracking = new Tracking(application.requestId(request), state, this);
    this.latest = tracking;
    const response = new PlainResponse(request, tracking, this);
    if (head.isLast) {
      this.#isFinal = true;
      response.shouldKeepAlive = false;
    }
    this.#responses.push(response);
    // A client that does not read gets no more requests read than are in memory.
    if (this.#isOutputFull()) {
      this.#isOutputPaused = true;
      this.#settleReading();
    }
    application.handle(request, response, tracking);
  }

  #isOutputFull(): boolean {
    if (this.socket.writableNeedDrain) return true;
    if (this.#responses.length < 2) return false;
    const waiting = this.#responses.reduce((sum, { waitingBytes }) => sum + waitingBytes, 0);
    return waiting >= this.socket.writableHighWaterMark;
  }

  /** The last byte of the first response was passed to the system, unless the connection broke. */
  readonly onFlushed = (error?: Error | null): void => {
    const response = this.#responses[0];
    if ((error !== undefined && error !== null) || response === undefined) return;
    this.#responses.shift();
    if (response === this.#last || (this.#isFinal && this.#responses.length === 0)) {
      this.socket.destroySoon();
    } else {
      response.req.drop();
      this.#advance();
    }
    response.finish();
  };

  /** After a response: the next one, or what waits for the last. */
  #advance(): void {
    const next = this.#responses[0];
    if (next !== undefined) next.takeTurn();
    if (this.#isOutputPaused && !this.#isOutputFull()) this.#resumeOutput();
    if (this.#refusal !== null) this.#sendRefusal(this.#refusal);
    if (this.#responses.length > 0 || this.isClosing) return;
    if (this.#isLeaving && this.#held !== null) this.#leave(this.#held);
    else if (this.#request === null && this.#held === null) this.#becomeIdle();
  }

  #becomeIdle(): void {
    this.since = this.#listener.now;
    if (!this.#listener.isDrained) return;
    this.isClosing = true;
    this.socket.destroySoon();
  }

  /** The bytes are not a plain request: node:http reads them, when nothing is due any more. */
  #leave(bytes: Buffer): void {
    this.#isLeaving = true;
    if (this.#responses.length > 0) {
      this.#hold(bytes);
      return;
    }
    this.#held = null;
    const { socket } = this;
    // The client has left.
    if (socket.readableEnded) {
      socket.destroySoon();
      return;
    }
    socket.off("data", this.#onData);
    socket.off("end", this.#onEnd);
    socket.off("drain", this.#onDrain);
    socket.off("error", ignore);
    socket.off("close", this.#onClose);
    this.#listener.handOver(this, socket, bytes);
  }

  #hold(bytes: Buffer): void {
    this.#held = bytes;
    if (bytes.length < MAX_HELD_BYTES || this.#isHeldPaused) return;
    this.#isHeldPaused = true;
    this.#settleReading();
  }

  /** Refuses the request that is arriving, after the responses to earlier ones. */
  #refuse(refusal: ListenerRefusal): void {
    if (this.#refusal !== null) return;
    this.#refusal = refusal;
    this.#listener.application.malformed();
    this.#sendRefusal(refusal);
  }

  #sendRefusal(refusal: ListenerRefusal): void {
    const { front, socket } = this;
    if (front !== undefined && front.req.complete) return;
    this.isClosing = true;
    // The rest of this request cannot be read and its response is incomplete: no other response can follow.
    if (front?.headersSent === true) socket.destroy();
    else sendFinalAnswer(socket, this.#listener.application.refusalText(refusal));
  }

  readonly #onEnd = (): void => {
    // As node:http does: a client that ends its side in the middle of a request is told, one that waits for a response has left.
    if (this.#request !== null || (this.#held !== null && !this.#isLeaving)) this.#refuse("malformed");
    else this.socket.end();
  };

  readonly #onDrain = (): void => {
    this.#resumeOutput();
    this.#responses[0]?.drained();
  };

  readonly #onClose = (): void => {
    this.#listener.closed(this);
    this.#held = null;
    const request = this.#request;
    this.#request = null;
    request?.breakOff();
    for (const response of this.#responses.splice(0)) response.close();
  };

  #resumeOutput(): void {
    if (!this.#isOutputPaused) return;
    this.#isOutputPaused = false;
    this.#settleReading();
  }

  #settleReading(): void {
    if (this.#isBodyPaused || this.#isOutputPaused || this.#isHeldPaused) this.socket.pause();
    else this.#listener.outside(() => this.socket.resume());
  }
}

function ignore(): void {}
