/** Between node:http and the web's `Request` and `Response`, which agents' code speaks. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { once } from "node:events";

/** Meaningful to one hop only (RFC 9110, section 7.6.1); not the agent's to see or set. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** `target` replaces the request's own, e.g. without credentials; `body` is what was read from it. */
export function toWebRequest(
  request: IncomingMessage,
  target: string,
  options: { body?: Uint8Array; isCredentialHidden?: boolean } = {},
): Request {
  const headers = new Headers();
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const name = (request.rawHeaders[i] ?? "").toLowerCase();
    if (HOP_BY_HOP.has(name) || (options.isCredentialHidden === true && name === "authorization")) continue;
    const value = request.rawHeaders[i + 1] ?? "";
    headers.append(name, name === "cookie" ? withoutSession(value) : value);
  }
  const method = request.method ?? "GET";
  const hasBody = options.body !== undefined && method !== "GET" && method !== "HEAD";
  return new Request(`http://${request.headers.host ?? "localhost"}${target}`, {
    method,
    headers,
    ...(hasBody ? { body: options.body as Uint8Array<ArrayBuffer> } : {}),
  });
}

/** The dashboard's session is nobody's business but the dashboard's. */
function withoutSession(cookies: string): string {
  return cookies
    .split(";")
    .filter((pair) => !pair.trim().startsWith("signalbox_session_"))
    .join(";")
    .trim();
}

/** Writes the agent's answer; a body that streams is passed on as it comes, at the client's pace. */
export async function sendWebResponse(from: Response, to: ServerResponse, isHead: boolean): Promise<void> {
  const cookies = from.headers.getSetCookie();
  if (cookies.length > 0) to.setHeader("set-cookie", cookies);
  for (const [name, value] of from.headers) {
    if (name !== "set-cookie" && !HOP_BY_HOP.has(name)) to.setHeader(name, value);
  }
  to.statusCode = from.status;
  if (isHead || from.body === null) {
    await from.body?.cancel();
    to.end();
    return;
  }
  const reader = from.body.getReader();
  // The client has gone: that what it was sent cannot be cancelled matters to nobody.
  to.once("close", () => void reader.cancel().catch(() => undefined));
  for (;;) {
    const { done, value } = await reader.read();
    if (done || to.destroyed) break;
    if (!to.write(value)) await Promise.race([once(to, "drain"), once(to, "close")]);
  }
  to.end();
}
