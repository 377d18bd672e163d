/**
 * The response to a plain request.
 *
 * Invariants:
 * 1. The bytes on the wire are those that node:http would write to an HTTP/1.1 client; a test compares every kind of response.
 * 2. Head, chunk framing and a piece of body of moderate size leave in one write.
 * 3. Nothing is written before the responses to earlier requests of the connection have been sent; until then the pieces wait here.
 * 4. `close` is emitted once: after the last byte was passed to the system, or when the connection ended.
 */
import { EventEmitter } from "node:events";
import type { OutgoingHttpHeader } from "node:http";
import type { Socket } from "node:net";
import type { HeaderList, ServedResponse } from "./http-exchange.ts";
import { STATUS_CODES, validateHeaderName, validateHeaderValue } from "./node-http.ts";
import type { PlainRequest } from "./plain-request.ts";
import { type Tracking, withAdded } from "./tracking.ts";

/** The connection of a response. */
export interface Outlet {
  readonly socket: Socket;
  /** The response that may be written. */
  readonly front: PlainResponse | undefined;
  /** A line of the head, or empty. */
  readonly keepAliveLine: string;
  /** The callback of the last write of a response. */
  readonly onFlushed: (error?: Error | null) => void;
  /** A response says that it is the last one of the connection. */
  closeAfter(response: PlainResponse): void;
  /** The response is over, one way or the other. */
  ended(response: PlainResponse): void;
}

/** Larger pieces are not copied: the copy would cost more than the writes it saves. */
const MAX_LAST_BYTES = 64 * 1024;
/** Far below the high-water mark of a socket. */
const MAX_PIECE_BYTES = 12 * 1024;

type Callback = (error?: Error | null) => void;

/** What is passed to the socket at once: text, bytes of the body, text. Only a body without framing is text. */
interface Piece {
  readonly before: string;
  readonly body: string | Uint8Array | null;
  readonly encoding: "utf8" | "latin1";
  readonly after: string;
  readonly isLast: boolean;
  readonly callback: Callback | undefined;
}

/** Headers that were removed, so that they are not added either. */
const NO_CONNECTION = 1;
const NO_LENGTH = 2;
const NO_CODING = 4;
const NO_DATE = 8;
const REMOVED: Readonly<Record<string, number>> = {
  connection: NO_CONNECTION,
  "content-length": NO_LENGTH,
  "transfer-encoding": NO_CODING,
  date: NO_DATE,
};

export class PlainResponse extends EventEmitter implements ServedResponse {
  readonly req: PlainRequest;
  readonly tracking: Tracking;
  statusCode = 200;
  statusMessage = "";
  shouldKeepAlive = true;
  /** As in node:http, for `pipeline`: a response that is closed early is not taken for a finished one. */
  readonly writable = true;
  destroyed = false;
  writableEnded = false;
  writableFinished = false;
  readonly #outlet: Outlet;
  /** Null before `writeHead`, empty when it has been sent. */
  #head: string | null = null;
  #hasBody: boolean;
  #isChunked = false;
  #trailer = "";
  #needsDrain = false;
  #isClosed = false;
  #fields: Map<string, [name: string, value: OutgoingHttpHeader]> | null = null;
  #removed = 0;
  /** Pieces of a response whose turn has not come. */
  #waiting: Piece[] | null = null;
  #waitingBytes = 0;

  constructor(req: PlainRequest, tracking: Tracking, outlet: Outlet) {
    super();
    this.req = req;
    this.tracking = tracking;
    this.#outlet = outlet;
    this.#hasBody = req.method !== "HEAD";
  }

  get headersSent(): boolean {
    return this.#head !== null;
  }

  get writableNeedDrain(): boolean {
    return this.#needsDrain && !this.destroyed && !this.writableEnded;
  }

  /** For the connection: bytes that wait for earlier responses. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  writeHead(status: number, reason?: string | HeaderList, headers?: HeaderList): this {
    return this.#storeHead(status, reason, headers, null);
  }

  setHeader(name: string, value: OutgoingHttpHeader | readonly string[]): this {
    this.#requireNoHead("set");
    check(name, value as OutgoingHttpHeader);
    (this.#fields ??= new Map()).set(name.toLowerCase(), [name, value as OutgoingHttpHeader]);
    return this;
  }

  appendHeader(name: string, value: OutgoingHttpHeader): this {
    this.#requireNoHead("append");
    const field = this.#fields?.get(name.toLowerCase());
    if (field === undefined) return this.setHeader(name, value);
    check(name, value);
    field[1] = [field[1], value].flat().map(String);
    return this;
  }

  getHeaderNames(): string[] {
    return this.#fields === null ? [] : [...this.#fields.keys()];
  }

  removeHeader(name: string): void {
    this.#requireNoHead("remove");
    const key = name.toLowerCase();
    this.#removed |= REMOVED[key] ?? 0;
    this.#fields?.delete(key);
  }

  flushHeaders(): void {
    if (this.#head === null) this.writeHead(this.statusCode);
    if (!this.destroyed && !this.writableEnded) this.#send(null, "latin1", "", false, undefined);
  }

  addTrailers(trailers: readonly [string, string][]): void {
    this.#trailer = "";
    for (const [name, value] of trailers) {
      check(name, value);
      this.#trailer += `${name}: ${value}\r\n`;
    }
  }

  write(
    chunk: string | Uint8Array,
    encoding?: BufferEncoding | Callback | null,
    callback?: Callback | null,
  ): boolean {
    if (typeof encoding === "function") return this.write(chunk, null, encoding);
    if (this.writableEnded || this.destroyed) {
      if (typeof callback === "function") process.nextTick(callback, closedError());
      return false;
    }
    if (this.#head === null) this.writeHead(this.statusCode);
    if (!this.#hasBody) {
      if (typeof callback === "function") process.nextTick(callback);
      return true;
    }
    const hasRoom = this.#sendPiece(chunk, encoding, callback ?? undefined);
    if (!hasRoom) this.#needsDrain = true;
    return hasRoom;
  }

  end(
    chunk?: string | Uint8Array | Callback | null,
    encoding?: BufferEncoding | Callback | null,
    callback?: Callback | null,
  ): this {
    if (typeof chunk === "function") return this.end(null, null, chunk);
    if (typeof encoding === "function") return this.end(chunk, null, encoding);
    if (this.writableEnded || this.destroyed) {
      if (typeof callback === "function") process.nextTick(callback, closedError());
      return this;
    }
    if (typeof callback === "function") this.once("finish", () => callback());
    const body = chunk === undefined || chunk === null ? "" : chunk;
    if (this.#head === null)
      this.#storeHead(this.statusCode, undefined, undefined, byteLength(body, encoding));
    this.writableEnded = true;
    const { onFlushed } = this.#outlet;
    if (!this.#hasBody) this.#send(null, "latin1", "", true, onFlushed);
    else if (this.#isChunked) this.#endChunked(body, encoding, onFlushed);
    else if (body.length > 0) this.#sendBody(body, encoding, true, onFlushed);
    else this.#send(null, "latin1", "", true, onFlushed);
    return this;
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    this.destroyed = true;
    // Of a response whose turn has not come, only the connection learns later.
    if (this.#outlet.front === this) this.#outlet.socket.destroy(error);
    else process.nextTick(() => this.close());
    return this;
  }

  /** For the connection: the earlier responses have been sent. */
  takeTurn(): void {
    const { socket } = this.#outlet;
    if (this.destroyed) {
      socket.destroy();
      return;
    }
    const waiting = this.#waiting;
    if (waiting === null) return;
    this.#waiting = null;
    this.#waitingBytes = 0;
    socket.cork();
    for (const piece of waiting) this.#pass(piece);
    socket.uncork();
    if (!socket.writableNeedDrain) this.drained();
  }

  /** For the connection: its socket takes more bytes. */
  drained(): void {
    if (!this.writableNeedDrain) return;
    this.#needsDrain = false;
    this.emit("drain");
  }

  /** For the connection: every byte was passed to the system. */
  finish(): void {
    this.writableFinished = true;
    this.emit("finish");
    this.close();
  }

  /** For the connection: it has ended, or the response has. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.destroyed = true;
    this.#waiting = null;
    this.#outlet.ended(this);
    this.emit("close");
  }

  /** `length`: of the whole body, if it is known without a header. */
  #storeHead(
    status: number,
    reason: string | HeaderList | undefined,
    headers: HeaderList | undefined,
    length: number | null,
  ): this {
    this.#requireNoHead("write");
    if (!(status >= 100 && status <= 999)) throw new RangeError(`Invalid status code: ${status}`);
    const { tracking } = this;
    if (tracking.closesConnection()) this.shouldKeepAlive = false;
    const given = withAdded(typeof reason === "string" ? headers : (reason ?? headers), tracking);
    if (typeof reason === "string") this.statusMessage = reason;
    else this.statusMessage ||= STATUS_CODES[status] ?? "unknown";
    this.statusCode = status;
    validateHeaderValue("statusMessage", this.statusMessage);
    const head = new Head(`HTTP/1.1 ${status} ${this.statusMessage}\r\n`);
    if (this.#fields === null) head.add(given);
    else this.#addMerged(head, given);
    const isEmpty = status === 204 || status === 304 || status < 200;
    const hasBody = this.#hasBody && !isEmpty;
    const removed = this.#removed;
    let shouldKeepAlive = this.shouldKeepAlive || (head.hasConnection && !head.isClose);
    let isChunked = head.isChunked;
    if ((removed & NO_DATE) === 0 && !head.hasDate) head.text += dateLine();
    if (isChunked && (status === 204 || status === 304)) {
      isChunked = false;
      shouldKeepAlive = false;
    }
    let isLast = head.isClose;
    if (!head.hasConnection && (removed & NO_CONNECTION) !== 0) isLast = !shouldKeepAlive;
    else if (!head.hasConnection) {
      isLast = !shouldKeepAlive;
      head.text += isLast ? "Connection: close\r\n" : "Connection: keep-alive\r\n";
      if (!isLast && !head.hasKeepAlive) head.text += this.#outlet.keepAliveLine;
    }
    if (!head.hasLength && !head.hasCoding) {
      if (!hasBody) isChunked = false;
      else if (length !== null && !head.hasTrailer && (removed & NO_LENGTH) === 0)
        head.text += `Content-Length: ${length}\r\n`;
      else if ((removed & NO_CODING) === 0) {
        head.text += "Transfer-Encoding: chunked\r\n";
        isChunked = true;
      } else isLast = true;
    }
    if (!isChunked && head.hasTrailer) throw new Error("Trailers are invalid with this transfer encoding");
    this.#head = `${head.text}\r\n`;
    this.#hasBody = hasBody;
    this.#isChunked = isChunked;
    this.shouldKeepAlive = shouldKeepAlive;
    if (isLast) this.#outlet.closeAfter(this);
    return this;
  }

  /** Headers that were set before; those that are given now replace them. */
  #addMerged(head: Head, given: HeaderList): void {
    if (Array.isArray(given)) {
      for (let i = 0; i < given.length; i += 2) this.removeHeader(String(given[i]));
      for (let i = 0; i < given.length; i += 2)
        this.appendHeader(String(given[i]), given[i + 1] as OutgoingHttpHeader);
    } else {
      for (const name of Object.keys(given)) this.setHeader(name, given[name] as OutgoingHttpHeader);
    }
    for (const [name, value] of this.#fields?.values() ?? []) head.addField(name, value);
  }

  #requireNoHead(action: string): void {
    if (this.#head !== null)
      throw Object.assign(new Error(`Cannot ${action} headers after they are sent to the client`), {
        code: "ERR_HTTP_HEADERS_SENT",
      });
  }

  /** A piece of the body that is not the last one. */
  #sendPiece(
    chunk: string | Uint8Array,
    encoding: BufferEncoding | null | undefined,
    callback: Callback | undefined,
  ): boolean {
    if (!this.#isChunked) return this.#sendBody(chunk, encoding, false, callback);
    const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding ?? "utf8") : chunk;
    if (bytes.length === 0) return this.#send(null, "latin1", "", false, callback);
    return this.#send(bytes, "latin1", "\r\n", false, callback);
  }

  #endChunked(
    body: string | Uint8Array,
    encoding: BufferEncoding | null | undefined,
    callback: Callback,
  ): void {
    const end = `0\r\n${this.#trailer}\r\n`;
    const bytes = typeof body === "string" ? Buffer.from(body, encoding ?? "utf8") : body;
    if (bytes.length === 0) this.#send(null, "latin1", end, true, callback);
    else this.#send(bytes, "latin1", `\r\n${end}`, true, callback);
  }

  /** A piece without framing. */
  #sendBody(
    body: string | Uint8Array,
    encoding: BufferEncoding | null | undefined,
    isLast: boolean,
    callback: Callback | undefined,
  ): boolean {
    if (typeof body !== "string") return this.#send(body, "latin1", "", isLast, callback);
    if (encoding === undefined || encoding === null || encoding === "utf8" || encoding === "utf-8")
      return this.#send(body, "utf8", "", isLast, callback);
    if (encoding === "latin1") return this.#send(body, "latin1", "", isLast, callback);
    return this.#send(Buffer.from(body, encoding), "latin1", "", isLast, callback);
  }

  /** The head, if it has not been sent, and a piece of the body with its framing. False when the client reads too slowly. */
  #send(
    body: string | Uint8Array | null,
    encoding: "utf8" | "latin1",
    after: string,
    isLast: boolean,
    callback: Callback | undefined,
  ): boolean {
    const head = this.#head ?? "";
    this.#head = "";
    const before = this.#isChunked && body !== null ? `${head}${body.length.toString(16)}\r\n` : head;
    const piece: Piece = { before, body, encoding, after, isLast, callback };
    if (this.#outlet.front === this) return this.#pass(piece);
    (this.#waiting ??= []).push(piece);
    this.#waitingBytes += before.length + (body?.length ?? 0) + after.length;
    return this.#waitingBytes < MAX_LAST_BYTES;
  }

  #pass({ before, body, encoding, after, isLast, callback }: Piece): boolean {
    const { socket } = this.#outlet;
    // It ends, and `close` follows.
    if (!socket.writable) return false;
    if (body === null || typeof body === "string") {
      const text = body === null ? before + after : before + body;
      if (text !== "" || socket.writableLength > 0) return socket.write(text, encoding, callback);
      if (callback !== undefined) process.nextTick(callback);
      return true;
    }
    if (body.length <= (isLast ? MAX_LAST_BYTES : MAX_PIECE_BYTES))
      return socket.write(join(before, body, after), callback);
    socket.cork();
    if (before !== "") socket.write(before, "latin1");
    if (after === "") {
      socket.write(body, callback);
    } else {
      socket.write(body);
      socket.write(after, "latin1", callback);
    }
    socket.uncork();
    return !socket.writableNeedDrain;
  }
}

/** The lines of a head while it is made, and what they say about the connection and the body. */
class Head {
  text: string;
  hasConnection = false;
  isClose = false;
  hasKeepAlive = false;
  hasLength = false;
  hasCoding = false;
  isChunked = false;
  hasDate = false;
  hasTrailer = false;

  constructor(statusLine: string) {
    this.text = statusLine;
  }

  add(headers: HeaderList): void {
    if (Array.isArray(headers)) {
      for (let i = 0; i + 1 < headers.length; i += 2)
        this.addField(headers[i] as string, headers[i + 1] as OutgoingHttpHeader);
    } else {
      for (const name in headers)
        if (Object.hasOwn(headers, name)) this.addField(name, headers[name] as OutgoingHttpHeader);
    }
  }

  addField(name: string, value: OutgoingHttpHeader): void {
    if (!NAME.test(name)) validateHeaderName(name);
    if (Array.isArray(value)) {
      if (value.length > 1 && name.toLowerCase() === "cookie") this.#addLine(name, value.join("; "));
      else for (const each of value) this.#addLine(name, each);
    } else {
      this.#addLine(name, value);
    }
  }

  #addLine(name: string, value: string | number): void {
    const text = typeof value === "string" ? value : String(value);
    if (value === undefined || INVALID_VALUE.test(text)) validateHeaderValue(name, value as string);
    this.text += `${name}: ${text}\r\n`;
    switch (name.length) {
      case 4:
        this.hasDate ||= name.toLowerCase() === "date";
        break;
      case 7:
        this.hasTrailer ||= name.toLowerCase() === "trailer";
        break;
      case 10:
        if (name.toLowerCase() === "connection") {
          this.hasConnection = true;
          this.isClose ||= CLOSE.test(text);
        } else this.hasKeepAlive ||= name.toLowerCase() === "keep-alive";
        break;
      case 14:
        this.hasLength ||= name === "content-length" || name.toLowerCase() === "content-length";
        break;
      case 17:
        if (name.toLowerCase() !== "transfer-encoding") break;
        this.hasCoding = true;
        this.isChunked ||= CHUNKED.test(text);
        break;
      default:
    }
  }
}

const NAME = /^[\^_`a-zA-Z\-0-9!#$%&'*+.|~]+$/;
// oxlint-disable-next-line no-control-regex
const INVALID_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const CLOSE = /(?:^|\W)close(?:$|\W)/i;
const CHUNKED = /(?:^|\W)chunked(?:$|\W)/i;

function check(name: string, value: OutgoingHttpHeader): void {
  validateHeaderName(name);
  for (const each of Array.isArray(value) ? value : [value]) validateHeaderValue(name, each as string);
}

let dateSecond = -1;
let dateText = "";

/** Made once a second. */
function dateLine(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = `Date: ${new Date(second * 1000).toUTCString()}\r\n`;
  }
  return dateText;
}

function join(before: string, body: Uint8Array, after: string): Buffer {
  const joined = Buffer.allocUnsafe(before.length + body.length + after.length);
  if (before !== "") joined.write(before, 0, "latin1");
  joined.set(body, before.length);
  if (after !== "") joined.write(after, before.length + body.length, "latin1");
  return joined;
}

function byteLength(body: string | Uint8Array, encoding: BufferEncoding | null | undefined): number {
  return typeof body === "string" ? Buffer.byteLength(body, encoding ?? "utf8") : body.length;
}

function closedError(): Error {
  return Object.assign(new Error("the response has ended"), { code: "ERR_STREAM_DESTROYED" });
}
