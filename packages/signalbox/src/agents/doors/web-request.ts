/** Converts between node:http and the Fetch API's `Request` and `Response`, which agents' code uses. */
import { type HttpRequest, type HttpResponse, relayStream } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { SESSION_COOKIE_PREFIX } from "../../accounts/index.ts";
import { affectsOrigin } from "../../http/foreign-answer.ts";
import { requireUrlPath, splitTarget } from "../../http/request-target.ts";

/** Hop-by-hop headers (RFC 9110, section 7.6.1), which agents neither see nor set. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The methods that `Request` accepts; it refuses TRACE (and CONNECT, which never arrives here). */
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/**
 * `target` replaces the target of the request, for example without credentials; `body` is the body that was read. Throws `method_not_allowed`,
 * `invalid_request` or `malformed_http` for a request that `Request` cannot represent.
 */
export function toWebRequest(
  request: HttpRequest,
  target: string,
  options: {
    body?: Uint8Array;
    isCredentialHidden?: boolean;
    /** Replace headers of the same names. */
    headers?: Readonly<Record<string, string>> | undefined;
  } = {},
): Request {
  const headers = new Headers();
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const name = (request.rawHeaders[i] ?? "").toLowerCase();
    if (HOP_BY_HOP.has(name) || (options.isCredentialHidden === true && name === "authorization")) continue;
    const value = request.rawHeaders[i + 1] ?? "";
    headers.append(name, name === "cookie" ? withoutSession(value) : value);
  }
  if (options.headers !== undefined)
    for (const [name, value] of Object.entries(options.headers)) headers.set(name, value);
  const method = request.method ?? "GET";
  if (method === "TRACE") throw new SignalboxError("method_not_allowed", { headers: { allow: METHODS } });
  requireUrlPath(splitTarget(target).path);
  const hasBody = options.body !== undefined && method !== "GET" && method !== "HEAD";
  // A call from inside the process has no connection.
  const scheme =
    (request.socket as { encrypted?: boolean } | undefined)?.encrypted === true ? "https" : "http";
  return new Request(`${scheme}://${checkHost(request)}${target}`, {
    method,
    headers,
    ...(hasBody ? { body: options.body as Uint8Array<ArrayBuffer> } : {}),
  });
}

/** The host and optional port. Throws for a value that would change the meaning of a URL (`user@`, a path). */
export function checkHost({ headers: { host = "localhost" } }: HttpRequest): string {
  if (/[@/\\?#]/.test(host) || !URL.canParse(`http://${host}/`)) {
    throw new SignalboxError("malformed_http", { message: "The Host header is malformed" });
  }
  return host;
}

/** Agents must not see the dashboard's session cookie. */
function withoutSession(cookies: string): string {
  return cookies
    .split(";")
    .filter((pair) => !pair.trim().startsWith(SESSION_COOKIE_PREFIX))
    .join(";")
    .trim();
}

/**
 * True when a `Set-Cookie` would overwrite or shadow the dashboard's session cookie. A browser sends a cookie without a name as its bare
 * value, so `=signalbox_session_8787=x` is sent as if it had that name.
 */
function isSessionCookie(setCookie: string): boolean {
  return setCookie
    .replace(/^[\s=]+/, "")
    .toLowerCase()
    .startsWith(SESSION_COOKIE_PREFIX);
}

/** Writes the agent's response without headers that would apply to the connection or to the whole origin. */
export async function sendWebResponse(from: Response, to: HttpResponse, isHead: boolean): Promise<void> {
  const cookies = from.headers.getSetCookie().filter((cookie) => !isSessionCookie(cookie));
  if (cookies.length > 0) to.setHeader("set-cookie", cookies);
  for (const [name, value] of from.headers) {
    if (name === "set-cookie" || name === "content-length") continue;
    if (HOP_BY_HOP.has(name) || affectsOrigin(name)) continue;
    if (name === "vary") to.appendHeader(name, value);
    else to.setHeader(name, value);
  }
  to.statusCode = from.status;
  if (isHead || from.body === null) {
    // The length that the agent states is information here. Of a body, node:http frames what there is.
    const stated = from.headers.get("content-length");
    if (isHead && stated !== null) to.setHeader("content-length", stated);
    to.end();
    await from.body?.cancel();
    return;
  }
  await relayStream(from.body, to, null);
  to.end();
}
