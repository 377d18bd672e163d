/** Parses the header lines of a response's head or trailer, and reads from them what framing needs. */
import { UpstreamFailure } from "./upstream.ts";

export interface Fields {
  /** Name, value, name, value, …; names as sent. */
  readonly rawHeaders: readonly string[];
  /** Value of the first `content-type` header; empty when there is none. */
  readonly contentType: string;
  readonly contentLength: number | null;
  readonly isChunked: boolean;
  readonly isClose: boolean;
  /** How long the server keeps an idle connection, as it announces. */
  readonly keepAliveMs: number | null;
}

export const NO_FIELDS: Fields = {
  rawHeaders: [],
  contentType: "",
  contentLength: null,
  isChunked: false,
  isClose: false,
  keepAliveMs: null,
};

/** RFC 9110, section 5.1: a token. */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** Every control character except the tab. */
// oxlint-disable-next-line no-control-regex -- control characters are what the expression looks for
const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/;
/** Names that are known to be tokens: a server repeats its names in every response. Bounded, because the server chooses them. */
const knownNames = new Set<string>();
const MAX_KNOWN_NAMES = 1000;

/** Parses `text` from `start`; each line except the last ends in CR LF. Throws for everything that llhttp refuses. */
export function parseFields(text: string, start: number): Fields {
  const rawHeaders: string[] = [];
  let contentType = "";
  let contentLength: number | null = null;
  let isChunked = false;
  let isClose = false;
  let keepAliveMs: number | null = null;
  for (let at = start; at < text.length;) {
    const found = text.indexOf("\r\n", at);
    const end = found === -1 ? text.length : found;
    const colon = text.indexOf(":", at);
    if (colon <= at || colon > end) throw broken("invalid header line");
    const name = text.slice(at, colon);
    if (!knownNames.has(name)) checkName(name);
    const valueStart = skipBlanks(text, colon + 1, end);
    const valueEnd = endOfValue(text, valueStart, end);
    const value = text.slice(valueStart, valueEnd);
    if (CONTROL.test(value)) throw broken("control character in a header");
    at = end + 2;
    // Only names of these lengths are compared.
    switch (name.length) {
      case 10: {
        const lower = name.toLowerCase();
        if (lower === "connection") isClose ||= /(^|[\s,])close($|[\s,])/i.test(value);
        else if (lower === "keep-alive") keepAliveMs = parseKeepAlive(value);
        break;
      }
      case 12:
        if (contentType === "" && name.toLowerCase() === "content-type") contentType = value;
        break;
      case 14:
        if (name.toLowerCase() === "content-length") {
          if (contentLength !== null || !/^\d{1,15}$/.test(value)) throw broken("invalid content-length");
          contentLength = Number(value);
        }
        break;
      case 17:
        if (name.toLowerCase() === "transfer-encoding") {
          // llhttp reads a coding followed by a tab as a different coding.
          if (isChunked || value.toLowerCase() !== "chunked" || text.slice(valueEnd, end).includes("\t")) {
            throw broken("unsupported transfer-encoding");
          }
          isChunked = true;
        }
        break;
    }
    rawHeaders.push(name, value);
  }
  if (isChunked && contentLength !== null) throw broken("both content-length and transfer-encoding");
  return { rawHeaders, contentType, contentLength, isChunked, isClose, keepAliveMs };
}

/** A folded line, which begins with a blank, and a blank before the colon fail this check too. */
function checkName(name: string): void {
  if (!NAME.test(name)) throw broken("invalid header name");
  if (knownNames.size < MAX_KNOWN_NAMES) knownNames.add(name);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && isBlank(text.charCodeAt(at))) at += 1;
  return at;
}

/** Where the value ends, without trailing blanks. `trim` would also remove characters that other parsers keep or refuse. */
function endOfValue(text: string, from: number, end: number): number {
  let at = end;
  while (at > from && isBlank(text.charCodeAt(at - 1))) at -= 1;
  return at;
}

function parseKeepAlive(value: string): number | null {
  const seconds = /(?:^|[\s,])timeout=(\d{1,6})/i.exec(value)?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000;
}

export function broken(message: string): UpstreamFailure {
  return new UpstreamFailure("broken", message);
}
