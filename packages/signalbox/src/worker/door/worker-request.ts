/**
 * A request of the network as the worker's `fetch` sees it.
 *
 * Invariants:
 * 1. The body is a stream that reads the connection at the program's pace. More than `maxBytes` end it with `body_too_large`.
 * 2. `cf-connecting-ip` is the address of the connection, or what a trusted proxy says, whatever the client sent. The dashboard's session is not visible.
 */
import { SignalboxError } from "@signalbox/protocol";
import { SESSION_COOKIE_PREFIX } from "../../accounts/index.ts";
import { hasBody, type HttpRequest } from "../../engines/http-server/index.ts";
import type { ClientAddress } from "../../engines/ip-address/index.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { requireUrlPath } from "../../http/request-target.ts";

/** Hop-by-hop headers (RFC 9110, section 7.6.1); `upgrade` is kept, because programs recognize a WebSocket by it. */
const DROPPED: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "cf-connecting-ip",
  "cf-ray",
]);
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

export interface RequestOptions {
  /** Scheme and host that clients use, if it is configured: requests for that host have its scheme. */
  readonly publicUrl: URL | null;
  readonly maxBodyBytes: number;
  readonly clientAddress: ClientAddress;
}

export function toWorkerRequest(
  request: HttpRequest,
  context: RequestContext,
  { publicUrl, maxBodyBytes, clientAddress }: RequestOptions,
  signal: AbortSignal,
): Request {
  const method = request.method ?? "GET";
  if (method === "TRACE" || method === "CONNECT")
    throw new SignalboxError("method_not_allowed", { headers: { allow: METHODS } });
  requireUrlPath(context.path);
  const { host = "localhost" } = request.headers;
  const ownScheme = request.socket.encrypted === true ? "https:" : "http:";
  const scheme = publicUrl?.host === host ? publicUrl.protocol : ownScheme;
  const url = `${scheme}//${host}${context.path}${context.query === "" ? "" : `?${context.query}`}`;
  if (/[@/\\?#]/.test(host) || !URL.canParse(url))
    throw new SignalboxError("malformed_http", { message: "The Host header or the target is malformed" });
  const withBody = hasBody(request) && method !== "GET" && method !== "HEAD";
  const web = new Request(url, {
    method,
    headers: toHeaders(request, context.id, clientAddress),
    redirect: "manual",
    signal,
    ...(withBody ? { body: readBody(request, maxBodyBytes), duplex: "half" } : {}),
  });
  Object.defineProperty(web, "cf", {
    value: { httpProtocol: `HTTP/1.${request.httpVersionMinor}` },
    configurable: true,
  });
  return web;
}

function toHeaders(request: HttpRequest, requestId: string, clientAddress: ClientAddress): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < request.rawHeaders.length; i += 2) {
    const name = (request.rawHeaders[i] ?? "").toLowerCase();
    const value = request.rawHeaders[i + 1] ?? "";
    if (!DROPPED.has(name)) headers.append(name, name === "cookie" ? withoutSession(value) : value);
  }
  const address = clientAddress.ofRequest(request);
  if (address !== undefined) headers.set("cf-connecting-ip", address);
  headers.set("cf-ray", requestId);
  return headers;
}

function withoutSession(cookies: string): string {
  return cookies
    .split(";")
    .filter((pair) => !pair.trim().startsWith(SESSION_COOKIE_PREFIX))
    .join(";")
    .trim();
}

function readBody(request: HttpRequest, maxBytes: number): ReadableStream<Uint8Array> {
  const { body } = request;
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes) throw tooLarge(maxBytes);
  let received = 0;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let isOver = false;
        const end = (finish: () => void) => {
          if (isOver) return;
          isOver = true;
          finish();
        };
        body.on("data", (chunk: Buffer) => {
          if (isOver) return;
          received += chunk.length;
          if (received > maxBytes) {
            end(() => controller.error(tooLarge(maxBytes)));
            body.pause();
            return;
          }
          controller.enqueue(new Uint8Array(chunk));
          if ((controller.desiredSize ?? 0) <= 0) body.pause();
        });
        body.once("end", () => end(() => controller.close()));
        const broken = () => end(() => controller.error(new Error("the request body broke off")));
        body.once("error", broken);
        body.once("close", broken);
        body.pause();
      },
      pull() {
        body.resume();
      },
      cancel() {
        body.resume();
      },
    },
    // A few pieces ahead of the program.
    new ByteLengthQueuingStrategy({ highWaterMark: 64 * 1024 }),
  );
}

function tooLarge(maxBytes: number): SignalboxError {
  return new SignalboxError("body_too_large", {
    message: `Request body too large (maximum ${maxBytes} bytes)`,
    headers: { connection: "close" },
  });
}
