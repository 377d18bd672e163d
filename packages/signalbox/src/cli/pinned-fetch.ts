/**
 * `fetch` for the server of this machine's data folder, which names its certificate there. The certificate may be self-signed, or be for the public
 * name while the command connects to 127.0.0.1; it is trusted because only the owner of the data folder can write the file that names it. Any other
 * certificate is refused.
 */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { Readable } from "node:stream";

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** `certificate` is PEM. */
export function pinnedFetch(certificate: string): typeof fetch {
  return async (input, { method = "GET", headers, body, signal } = {}) => {
    if (body !== undefined && body !== null && typeof body !== "string")
      throw new TypeError("pinnedFetch sends text only");
    const sent = request(String(input instanceof Request ? input.url : input), {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      ca: certificate,
      allowPartialTrustChain: true,
      checkServerIdentity: () => undefined,
      agent: false,
      ...(signal === undefined || signal === null ? {} : { signal }),
    });
    sent.end(body ?? undefined);
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    // After the response has begun, its stream reports what happens to the connection.
    sent.on("error", () => undefined);
    const { statusCode: status = 200, statusMessage: statusText = "", rawHeaders } = answer;
    const pairs: [string, string][] = [];
    for (let i = 0; i + 1 < rawHeaders.length; i += 2)
      pairs.push([rawHeaders[i] ?? "", rawHeaders[i + 1] ?? ""]);
    const isEmpty = WITHOUT_BODY.has(status);
    if (isEmpty) answer.resume();
    const content = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array<ArrayBuffer>>);
    return new Response(content, { status, statusText, headers: pairs });
  };
}
