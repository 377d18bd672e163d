/**
 * Incremental HTTP/1.1 response parser (RFC 9112): takes the bytes of one connection, and reports one response at a time.
 *
 * Every response that it accepts, llhttp (the parser of Node.js and undici) reads the same way; it may refuse more than llhttp
 * (invariant 1 of the README). What it promises its caller:
 * - A response is reported as one `onHead` and at least one `onBody`; `isLast` is true for the last `onBody` only.
 * - A body chunk holds body bytes without framing. One `push` reports at most one `onBody`: chunk framing is removed in place. The
 *   chunk is a slice of the pushed buffer and valid until `push` returns.
 * - Input that can be read in two ways (two lengths, a length and chunks, unknown codings, folded lines, control characters, misplaced
 *   white space) is an error.
 * - Memory is bounded by `maxHeadBytes`, and the number of informational responses by `MAX_INTERIM`.
 */
import { broken, NO_FIELDS, parseFields } from "./response-fields.ts";
import type { ResponseHead } from "./upstream.ts";

export interface ResponseEvents {
  onHead(head: ResponseHead): void;
  onBody(chunk: Buffer, isLast: boolean): void;
}

type State =
  | "head"
  | "fixed"
  | "chunk-size"
  | "chunk-data"
  | "chunk-end"
  | "trailer"
  | "until-close"
  | "done";

const HEAD_END = "\r\n\r\n";
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*))?$/;
/** RFC 9112, section 7.1.1, without the white space that the grammar marks as bad. */
const CHUNK_SIZE =
  /^([0-9a-f]{1,13})(?:;[\w!#$%&'*+.^`|~-]+(?:=(?:[\w!#$%&'*+.^`|~-]+|"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*$/i;
/** Longest chunk-size line; chunk extensions in use are far shorter. */
const MAX_LINE_BYTES = 4096;
/** Servers send one or two before a response, or one every few seconds while they work on it (102). */
const MAX_INTERIM = 100;
const LF = 0x0a;
const CR = 0x0d;
/** 52 bits, which a number holds exactly. */
const MAX_SIZE_DIGITS = 13;
const EMPTY = Buffer.alloc(0);

export class ResponseParser {
  readonly #maxHeadBytes: number;
  #events: ResponseEvents | null = null;
  #isHeadRequest = false;
  #state: State = "done";
  #pending: Buffer | null = null;
  #remaining = 0;
  #line = "";
  #trailerBytes = 0;
  #interim = 0;
  #canReuse = false;
  #keepAliveMs: number | null = null;

  constructor(maxHeadBytes: number) {
    this.#maxHeadBytes = maxHeadBytes;
  }

  /** Prepares for the response to one request. */
  begin(events: ResponseEvents, isHeadRequest: boolean): void {
    this.#events = events;
    this.#isHeadRequest = isHeadRequest;
    this.#state = "head";
    this.#pending = null;
    this.#interim = 0;
    this.#canReuse = false;
    this.#keepAliveMs = null;
  }

  get isDone(): boolean {
    return this.#state === "done";
  }

  /** True when the response is complete and the connection can carry another request. */
  get canReuse(): boolean {
    return this.#state === "done" && this.#canReuse;
  }

  /** How long the server keeps an idle connection, as it announces; null when it does not announce it. */
  get keepAliveMs(): number | null {
    return this.#keepAliveMs;
  }

  /** Handles what one read brought; throws `UpstreamFailure` for bytes that are no valid response. */
  push(data: Buffer): void {
    let at = 0;
    while (this.#state === "head") {
      const head = this.#takeHead(data.subarray(at));
      if (head === null) return;
      at += head.used;
      this.#startBody(head.text);
    }
    if (this.#state === "done") {
      if (at < data.length) this.#canReuse = false;
    } else if (this.#state === "fixed") {
      this.#pushFixed(data, at);
    } else if (this.#state === "until-close") {
      if (at < data.length) this.#emit(at === 0 ? data : data.subarray(at), false);
    } else if (at < data.length) {
      this.#pushChunked(data, at);
    }
  }

  /** The connection was closed: completes a body without a length. Returns false when the response is incomplete. */
  finish(): boolean {
    if (this.#state === "done") return true;
    if (this.#state !== "until-close") return false;
    this.#state = "done";
    this.#emit(EMPTY, true);
    return true;
  }

  #emit(chunk: Buffer, isLast: boolean): void {
    this.#events?.onBody(chunk, isLast);
  }

  /** The header block as text, and how many bytes of `data` belong to it; null when it is incomplete. */
  #takeHead(data: Buffer): { text: string; used: number } | null {
    const before = this.#pending?.length ?? 0;
    const all = this.#pending === null ? data : Buffer.concat([this.#pending, data]);
    const end = all.indexOf(HEAD_END, Math.max(0, before - 3), "latin1");
    if (end === -1 ? all.length > this.#maxHeadBytes : end > this.#maxHeadBytes) {
      throw broken(`response headers over ${this.#maxHeadBytes} bytes`);
    }
    if (end === -1) {
      // Copied, because the caller reuses the pushed buffer.
      if (data.length > 0) this.#pending = this.#pending === null ? Buffer.from(data) : all;
      return null;
    }
    this.#pending = null;
    return { text: all.toString("latin1", 0, end), used: end + HEAD_END.length - before };
  }

  #startBody(text: string): void {
    const lineEnd = text.indexOf("\r\n");
    const status = STATUS_LINE.exec(lineEnd === -1 ? text : text.slice(0, lineEnd));
    if (status === null) throw broken("not an HTTP/1.1 response");
    const code = Number(status[2]);
    const fields = lineEnd === -1 ? NO_FIELDS : parseFields(text, lineEnd + 2);
    // Informational responses precede the final one. No request asks for an upgrade, so 101 is an error.
    if (code === 101) throw broken("unexpected 101 response");
    if (code < 200) {
      this.#interim += 1;
      if (this.#interim > MAX_INTERIM) throw broken(`more than ${MAX_INTERIM} informational responses`);
      return;
    }
    // A server that announces a body with 204 may send one, and the next response could not be told apart from it.
    const isOdd = code === 204 && (fields.isChunked || (fields.contentLength ?? 0) > 0);
    this.#canReuse = status[1] === "1" && !fields.isClose && !isOdd;
    this.#keepAliveMs = fields.keepAliveMs;
    const hasBody = !this.#isHeadRequest && code !== 204 && code !== 304;
    this.#remaining = fields.contentLength ?? 0;
    this.#line = "";
    this.#trailerBytes = 0;
    this.#state = !hasBody
      ? "done"
      : fields.isChunked
        ? "chunk-size"
        : fields.contentLength === null
          ? "until-close"
          : fields.contentLength === 0
            ? "done"
            : "fixed";
    this.#events?.onHead({
      status: code,
      statusText: status[3] ?? "",
      rawHeaders: fields.rawHeaders,
      contentType: fields.contentType,
    });
    if (this.#state === "done") this.#emit(EMPTY, true);
  }

  #pushFixed(data: Buffer, at: number): void {
    const available = data.length - at;
    if (available === 0) return;
    if (available < this.#remaining) {
      this.#remaining -= available;
      this.#emit(at === 0 ? data : data.subarray(at), false);
      return;
    }
    if (available > this.#remaining) this.#canReuse = false;
    this.#state = "done";
    this.#emit(data.subarray(at, at + this.#remaining), true);
  }

  #pushChunked(data: Buffer, start: number): void {
    let at = start;
    // The payload of this read, without the framing between its parts: [from, to).
    let from = -1;
    let to = -1;
    while (at < data.length && this.#state !== "done") {
      if (this.#state === "chunk-data") {
        const length = Math.min(this.#remaining, data.length - at);
        if (from === -1) {
          from = at;
          to = at;
        }
        if (to !== at) data.copyWithin(to, at, at + length);
        to += length;
        at += length;
        this.#remaining -= length;
        if (this.#remaining === 0) this.#state = "chunk-end";
        continue;
      }
      const after = this.#takeSimpleLine(data, at);
      if (after !== -1) {
        at = after;
        continue;
      }
      const end = data.indexOf(LF, at);
      const stop = end === -1 ? data.length : end + 1;
      this.#line += data.toString("latin1", at, stop);
      at = stop;
      if (this.#line.length > MAX_LINE_BYTES) throw broken("chunk header too long");
      if (end !== -1) this.#endLine();
    }
    const isLast = this.#state === "done";
    if (isLast && at < data.length) this.#canReuse = false;
    if (isLast || to > from) this.#emit(from === -1 ? EMPTY : data.subarray(from, to), isLast);
  }

  /**
   * Parses the common case of framing lines: complete, and without extensions. In a stream of small events a fifth of the bytes is
   * framing. Returns where the next element begins, or -1 for a line that needs the general parser.
   */
  #takeSimpleLine(data: Buffer, start: number): number {
    if (this.#line !== "") return -1;
    let at = start;
    if (this.#state === "chunk-end") {
      if (data[at] !== CR || data[at + 1] !== LF) return -1;
      this.#state = "chunk-size";
      at += 2;
    }
    if (this.#state !== "chunk-size") return -1;
    let size = 0;
    const digits = at;
    for (let digit = hexDigit(data[at]); digit !== -1; digit = hexDigit(data[++at])) size = size * 16 + digit;
    const count = at - digits;
    if (count === 0 || count > MAX_SIZE_DIGITS || data[at] !== CR || data[at + 1] !== LF) {
      // The end of the previous chunk may have been consumed.
      return digits > start ? digits : -1;
    }
    this.#remaining = size;
    this.#state = size === 0 ? "trailer" : "chunk-data";
    return at + 2;
  }

  #endLine(): void {
    const line = this.#line;
    this.#line = "";
    if (!line.endsWith("\r\n")) throw broken("bare line feed in chunked framing");
    const text = line.slice(0, -2);
    if (this.#state === "chunk-end") {
      if (text !== "") throw broken("chunk longer than announced");
      this.#state = "chunk-size";
    } else if (this.#state === "chunk-size") {
      const size = CHUNK_SIZE.exec(text)?.[1];
      if (size === undefined) throw broken("invalid chunk size");
      this.#remaining = Number.parseInt(size, 16);
      this.#state = this.#remaining === 0 ? "trailer" : "chunk-data";
    } else {
      // Trailers are checked and dropped: no known provider sends one that a client needs.
      this.#trailerBytes += line.length;
      if (this.#trailerBytes > this.#maxHeadBytes) throw broken("trailers too large");
      if (text === "") this.#state = "done";
      else if (parseFields(text, 0).contentLength !== null) throw broken("content-length in a trailer");
    }
  }
}

/** The value of a hexadecimal digit, -1 for any other byte and past the end. */
function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
