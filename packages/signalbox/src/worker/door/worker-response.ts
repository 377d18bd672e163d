/** The worker's response on the network. */
import { SESSION_COOKIE_PREFIX } from "../../accounts/index.ts";
import { type HttpResponse, relayStream } from "../../engines/http-server/index.ts";
import { lengthOf } from "../body-lengths.ts";

/** Headers of the connection (RFC 9110, section 7.6.1), the length of the body, and cookies, which are checked one by one. */
const DROPPED: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "set-cookie",
]);

/** The head for the network: names and values in turn. */
export function toHeadList(response: Response): string[] {
  const list: string[] = [];
  for (const [name, value] of response.headers) if (!DROPPED.has(name)) list.push(name, value);
  for (const cookie of response.headers.getSetCookie())
    if (!isSessionCookie(cookie)) list.push("set-cookie", cookie);
  return list;
}

/** True when a cookie would overwrite the dashboard's session. A browser sends a cookie without a name as its bare value. */
function isSessionCookie(cookie: string): boolean {
  return cookie
    .replace(/^[\s=]+/, "")
    .toLowerCase()
    .startsWith(SESSION_COOKIE_PREFIX);
}

/** Rejects if the body fails after the head was sent; the connection is then closed. */
export async function sendWorkerResponse(from: Response, to: HttpResponse, isHead: boolean): Promise<void> {
  const body = from.body as ReadableStream<Uint8Array> | null;
  if (to.destroyed) {
    await body?.cancel();
    return;
  }
  const head = toHeadList(from);
  if (isHead || body === null) {
    // The length that the program states is information here. Of a body, node:http frames what there is.
    const stated = from.headers.get("content-length");
    if (isHead && stated !== null) head.push("content-length", stated);
    to.writeHead(from.status, head).end();
    await body?.cancel();
    return;
  }
  const length = lengthOf(body);
  if (length !== null) head.push("content-length", String(length));
  to.writeHead(from.status, head);
  // A client that waits for a stream to open must not wait for its first piece.
  to.flushHeaders();
  await relayStream(body, to, length);
  to.end();
}
