/**
 * The one host of a request. Whoever decides by it (sessions, links) reads `request.headers.host`; here it is made sure that no other value
 * could be meant: no Host header, a second one and text that is no host are refused, and the authority of an absolute target takes the header's place.
 */
import type { IncomingMessage } from "node:http";
import { SignalboxError } from "@signalbox/protocol";

const HOST_NAME = "host";
/** Characters of RFC 3986's host and port, and nothing that could end a header, a path or a shell word. */
const HOST_TEXT = /^[\w.\-~%!$&'()*+,;=:[\]]*$/;

/** The last one that was a host: nearly every request names the same. */
let lastHost = "";

/** Throws `malformed_http` unless the request names one host. Runs on every request: no allocation, and node's header object is not built. */
export function settleHost(request: IncomingMessage): void {
  const { rawHeaders, url = "/" } = request;
  let host: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length !== HOST_NAME.length || (name !== "Host" && name.toLowerCase() !== HOST_NAME)) continue;
    if (host !== undefined) throw malformed("The request has two Host headers");
    host = rawHeaders[i + 1] ?? "";
  }
  if (host === undefined) {
    // RFC 9112, section 3.2; HTTP/1.0 knew no hosts.
    if (request.httpVersionMinor !== 0) throw malformed("The request has no Host header");
  } else if (host !== lastHost) {
    if (!HOST_TEXT.test(host)) throw malformed("The Host header is not a host");
    lastHost = host;
  }
  if (url.charCodeAt(0) !== 0x2f && URL.canParse(url)) request.headers.host = authorityOf(new URL(url));
}

/** RFC 9112, section 3.2.2: the server ignores the Host header of a request whose target names the host. */
function authorityOf({ host, username, password }: URL): string {
  // RFC 9110, section 4.2.4: user information in a target is an attempt to mislead.
  if (username !== "" || password !== "") throw malformed("The request's target names a user");
  return host;
}

function malformed(message: string): SignalboxError {
  return new SignalboxError("malformed_http", { message, headers: { connection: "close" } });
}
