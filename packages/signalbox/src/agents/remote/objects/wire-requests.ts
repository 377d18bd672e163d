/** Requests and responses on the wire: the head as data, the body as a stream that the reader pulls. */
import type { WorkerWebSocket } from "../../objects/web-socket.ts";
import type { Finds, Reference } from "./references.ts";
import { readableOf } from "./wire-streams.ts";

export interface WireRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: [string, string][];
  readonly redirect: Request["redirect"];
  readonly body: Reference | null;
  readonly signal: Reference;
  readonly isAborted: boolean;
  /** What the server told of the connection. */
  readonly cf: unknown;
}

export interface WireResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: [string, string][];
  readonly body: Reference | null;
  readonly webSocket: Reference | null;
}

type OfferBody = (body: ReadableStream) => Reference;

export function describeRequest(request: Request, offer: OfferBody, signal: Reference): WireRequest {
  const { method, url, headers, redirect, body } = request;
  const { cf } = request as Request & { readonly cf?: unknown };
  return {
    method,
    url,
    headers: [...headers],
    redirect,
    body: body === null ? null : offer(body),
    signal,
    isAborted: request.signal.aborted,
    cf,
  };
}

export function requestOf(wire: WireRequest, finds: Finds): Request {
  const { method, url, headers, redirect, body, signal, isAborted, cf } = wire;
  const request = new Request(url, {
    method,
    headers,
    redirect,
    signal: isAborted ? AbortSignal.abort() : finds.signal(signal),
    ...(body === null ? {} : { body: readableOf(finds.target(body)), duplex: "half" }),
  });
  if (cf !== undefined) Object.defineProperty(request, "cf", { value: cf });
  return request;
}

export function describeResponse(
  response: Response,
  offer: OfferBody,
  webSocket: Reference | null,
): WireResponse {
  const { status, statusText, headers, body } = response;
  return { status, statusText, headers: [...headers], body: body === null ? null : offer(body), webSocket };
}

export function responseOf(wire: WireResponse, finds: Finds): Response {
  const { status, statusText, headers, body, webSocket } = wire;
  if (status === 0) return Response.error();
  if (webSocket !== null)
    return new Response(null, {
      status,
      headers,
      webSocket: finds.socket(webSocket),
    } as ResponseInit & { webSocket: WorkerWebSocket });
  const stream = body === null ? null : readableOf(finds.target(body));
  return new Response(stream, { status, statusText, headers });
}
