/** The worker's response on the network. Bodies are relayed at the client's pace; a client that disconnects cancels the body. */
import { SESSION_COOKIE_PREFIX } from "../../accounts/index.ts";
import type { HttpResponse } from "../../engines/http-server/index.ts";

const DROPPED: ReadonlySet<string> = new Set([
  "connection",
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
  if (to.destroyed) {
    await from.body?.cancel();
    return;
  }
  to.writeHead(from.status, toHeadList(from));
  if (isHead || from.body === null) {
    await from.body?.cancel();
    to.end();
    return;
  }
  // A client that waits for a stream to open must not wait for its first piece.
  to.flushHeaders();
  const reader = (from.body as ReadableStream<Uint8Array>).getReader();
  // A body that cannot be cancelled has already ended or failed.
  to.once("close", () => void reader.cancel().catch(() => undefined));
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || to.destroyed) break;
      if (!to.write(value)) await drained(to);
    }
  } catch (error) {
    to.destroy();
    throw error;
  }
  to.end();
}

/** Resolves when more can be written, or when the response is closed. */
function drained(to: HttpResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      to.off("drain", end);
      to.off("close", end);
      resolve();
    };
    to.on("drain", end);
    to.on("close", end);
  });
}
