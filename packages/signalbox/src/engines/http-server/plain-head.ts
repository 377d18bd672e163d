/**
 * Reads the head of a plain request: the part of HTTP/1.1 that clients of this service send nearly always, and in which there is nothing to
 * interpret.
 *
 * Invariants:
 * 1. Whatever is accepted here, llhttp, the parser of node:http, accepts with the same method, target, headers and length of the body, in every
 *    setting of this server. A test compares both on generated heads (`plain-head.test.ts`).
 * 2. Everything else is `OTHER`: it is not refused but passed on to node:http, byte for byte. In doubt a rule here is the stricter one.
 * 3. `INCOMPLETE` is the beginning of a head that is plain so far.
 */

export interface PlainHead {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn. */
  readonly rawHeaders: string[];
  /** Of the body; 0 if none is declared. */
  readonly length: number;
  /** The client ends the connection with this request: `Connection: close`. */
  readonly isLast: boolean;
  /** Index of the first byte after the head. */
  readonly end: number;
}

export const OTHER = "other";
export const INCOMPLETE = "incomplete";

/** Requests with more headers are left to node:http, which ignores those above its own limit. */
const MAX_HEADERS = 100;
const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"].map((text) => ({
  text,
  bytes: Buffer.from(`${text} /`),
}));
/** The longest method with what follows it. */
const MIN_BYTES = 9;
const VERSION = Buffer.from(" HTTP/1.1\r\n");

/** The characters of names (RFC 9110, section 5.6.2). */
const NAME = tableOf(/[!#$%&'*+\-.^_`|~0-9A-Za-z]/);
/** ASCII without control characters; the tabulator only around values. */
const VALUE = tableOf(/[\t -~]/);
/** Without a fragment, which no client sends. */
const TARGET = tableOf(/[!-~]/);
TARGET[0x23] = 0;

/** Where names and values begin and end. The parser is never entered a second time. */
const places = new Int32Array(4 * MAX_HEADERS);

/** `maxBytes`: of a head with all its separators; node:http counts fewer of them. */
export function readPlainHead(
  bytes: Buffer,
  start: number,
  maxBytes: number,
): PlainHead | typeof OTHER | typeof INCOMPLETE {
  const size = bytes.length;
  // A shorter one is not worth another rule.
  if (size - start < MIN_BYTES) return OTHER;
  const method = methodAt(bytes, start);
  if (method === null) return OTHER;
  const targetStart = start + method.length + 1;
  let at = targetStart;
  while (at < size && TARGET[bytes[at] as number] === 1) at += 1;
  const targetEnd = at;
  for (let i = 0; i < VERSION.length; i++, at++) {
    if (at >= size) return incomplete(size - start, maxBytes);
    if (bytes[at] !== VERSION[i]) return OTHER;
  }
  let count = 0;
  for (;;) {
    if (at >= size) return incomplete(size - start, maxBytes);
    if (bytes[at] === CR) break;
    const nameStart = at;
    while (at < size && NAME[bytes[at] as number] === 1) at += 1;
    if (at >= size) return incomplete(size - start, maxBytes);
    if (bytes[at] !== COLON || at === nameStart || count === 4 * MAX_HEADERS) return OTHER;
    places[count++] = nameStart;
    places[count++] = at;
    at += 1;
    while (at < size && isSpace(bytes[at])) at += 1;
    places[count++] = at;
    while (at < size && VALUE[bytes[at] as number] === 1) at += 1;
    places[count++] = at;
    if (at >= size) return incomplete(size - start, maxBytes);
    if (bytes[at] !== CR) return OTHER;
    at += 1;
    if (at >= size) return incomplete(size - start, maxBytes);
    if (bytes[at] !== LF) return OTHER;
    at += 1;
  }
  at += 1;
  if (at >= size) return incomplete(size - start, maxBytes);
  if (bytes[at] !== LF) return OTHER;
  const end = at + 1;
  if (end - start >= maxBytes) return OTHER;
  const text = bytes.toString("latin1", start, end);
  const rawHeaders: string[] = [];
  const body = readHeaders(text, start, count, rawHeaders);
  if (body === null) return OTHER;
  return { method, target: text.slice(targetStart - start, targetEnd - start), rawHeaders, ...body, end };
}

function incomplete(size: number, maxBytes: number): typeof OTHER | typeof INCOMPLETE {
  return size >= maxBytes ? OTHER : INCOMPLETE;
}

/** Fills the list; null if a header asks for more than a plain request. */
function readHeaders(
  text: string,
  start: number,
  count: number,
  rawHeaders: string[],
): { readonly length: number; readonly isLast: boolean } | null {
  let hasHost = false;
  let connection = "";
  let length: number | null = null;
  for (let i = 0; i < count; i += 4) {
    const name = text.slice((places[i] as number) - start, (places[i + 1] as number) - start);
    const valueStart = (places[i + 2] as number) - start;
    const lineEnd = (places[i + 3] as number) - start;
    let valueEnd = lineEnd;
    while (valueEnd > valueStart && isSpace(text.charCodeAt(valueEnd - 1))) valueEnd -= 1;
    const value = text.slice(valueStart, valueEnd);
    rawHeaders.push(name, value);
    switch (name.length) {
      case 4:
        if (name !== "host" && name !== "Host" && name.toLowerCase() !== "host") break;
        if (hasHost) return null;
        hasHost = true;
        break;
      case 10:
        if (name.toLowerCase() !== "connection") break;
        if (connection !== "") return null;
        connection = value.toLowerCase();
        if (connection !== "keep-alive" && connection !== "close") return null;
        break;
      case 14:
        if (name.toLowerCase() !== "content-length") break;
        if (length !== null || valueEnd !== lineEnd || !LENGTH.test(value)) return null;
        length = Number(value);
        break;
      case 6:
      case 7:
      case 16:
      case 17:
        if (NOT_PLAIN.has(name.toLowerCase())) return null;
        break;
      default:
    }
  }
  return hasHost ? { length: length ?? 0, isLast: connection === "close" } : null;
}

/** Far below what a number holds exactly, and in its only spelling. */
const LENGTH = /^(?:0|[1-9]\d{0,14})$/;

/** Headers that change how a connection is used or where a request ends. */
const NOT_PLAIN: ReadonlySet<string> = new Set([
  "expect",
  "trailer",
  "upgrade",
  "proxy-connection",
  "transfer-encoding",
]);

function methodAt(bytes: Buffer, start: number): string | null {
  for (const method of METHODS) {
    let i = 0;
    while (i < method.bytes.length && bytes[start + i] === method.bytes[i]) i += 1;
    if (i === method.bytes.length) return method.text;
  }
  return null;
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

function tableOf(allowed: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) => (allowed.test(String.fromCharCode(code)) ? 1 : 0));
}
