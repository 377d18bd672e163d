/**
 * The host and the target of a request.
 *
 * Invariants:
 * 1. After `settleHost`, `request.headers.host` is the host of the request: requests without a Host header, with two, or with text that is not a
 *    host are refused, and the authority of an absolute target replaces the header. `request.url` has no authority then.
 * 2. A path is split before each segment is percent-decoded once: `%2F` does not separate segments, and `%2e%2e` is an ordinary name. Paths that do
 *    not decode to valid UTF-8, or contain NUL, are refused.
 * 3. Programs read URLs, whose parser resolves dot segments. A path that it would change never reaches a program (`requireUrlPath`): the
 *    program would act on another path than the one that was checked.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { HttpRequest } from "../engines/http-server/index.ts";

export interface RequestTarget {
  /** Raw path, starting with `/`. */
  readonly path: string;
  /** Raw query without `?`; empty when there is none. */
  readonly query: string;
}

const HOST_NAME = "host";
/** The characters of host and port (RFC 3986). */
const HOST_TEXT = /^[\w.\-~%!$&'()*+,;=:[\]]*$/;
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;

/** The last valid host: nearly all requests have the same one. */
let lastHost = "";

/** Throws `malformed_http` unless the request has exactly one host. Reads the raw headers, because it runs for every request. */
export function settleHost(request: HttpRequest): void {
  const { rawHeaders, url = "/" } = request;
  let host: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length !== HOST_NAME.length || (name !== "Host" && name.toLowerCase() !== HOST_NAME)) continue;
    if (host !== undefined) throw malformed("The request has two Host headers");
    host = rawHeaders[i + 1] ?? "";
  }
  if (host === undefined) {
    // RFC 9112, section 3.2; HTTP/1.0 has no Host header.
    if (request.httpVersionMinor !== 0) throw malformed("The request has no Host header");
  } else if (host !== lastHost) {
    if (!HOST_TEXT.test(host)) throw malformed("The Host header is not a host");
    lastHost = host;
  }
  // RFC 9112, section 3.2.2: a server must accept the absolute form.
  if (url.charCodeAt(0) === 0x2f || !URL.canParse(url)) return;
  request.headers.host = authorityOf(new URL(url));
  const rest = url.replace(ABSOLUTE_FORM, "");
  request.url = rest === "" || rest.startsWith("?") ? `/${rest}` : rest;
}

/** RFC 9112, section 3.2.2: the host of the target replaces the Host header. */
function authorityOf({ host, username, password }: URL): string {
  // RFC 9110, section 4.2.4: treat user information in a target as an error.
  if (username !== "" || password !== "") throw malformed("The request target contains user information");
  return host;
}

function malformed(message: string): SignalboxError {
  return new SignalboxError("malformed_http", { message, headers: { connection: "close" } });
}

export function splitTarget(target: string): RequestTarget {
  if (target.charCodeAt(0) !== 0x2f)
    throw new SignalboxError("invalid_request", { message: "Invalid request target" });
  const question = target.indexOf("?");
  return question === -1
    ? { path: target, query: "" }
    : { path: target.slice(0, question), query: target.slice(question + 1) };
}

/** Dot segments, also encoded ones, backslashes and fragments: what the parser of URLs changes in a path (WHATWG URL, section 4.4). */
const CHANGED_IN_URLS = /[\\#]|\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Throws for a path that a program would see as another one. Clients that are given a URL never send such a path. */
export function requireUrlPath(path: string): void {
  if (CHANGED_IN_URLS.test(path))
    throw new SignalboxError("invalid_request", {
      message: "The path contains a dot segment, a backslash or a fragment",
    });
}

/** Returns the decoded segments of a path. After a trailing slash the last segment is empty. */
export function decodeSegments(path: string): string[] {
  return path.slice(1).split("/").map(decodeSegment);
}

export function decodeSegment(raw: string): string {
  if (!raw.includes("%") && !raw.includes("\0")) return raw;
  let text: string;
  try {
    text = decodeURIComponent(raw);
  } catch {
    throw new SignalboxError("invalid_request", { message: "The path is not valid percent-encoded UTF-8" });
  }
  if (text.includes("\0"))
    throw new SignalboxError("invalid_request", { message: "The path contains a NUL character" });
  return text;
}
