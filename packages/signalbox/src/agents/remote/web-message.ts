/** Requests and responses of the Fetch API between two nodes. */
import { Readable } from "node:stream";
import type { ExchangeReply } from "./serve-exchanges.ts";
import type { ExchangeAnswer } from "./exchange.ts";

/** A request without its body, as JSON. */
export interface CarriedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly [string, string][];
}

/** A response without its body, as JSON. */
interface CarriedResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly [string, string][];
}

export function toCarriedRequest({ method, url, headers }: Request): CarriedRequest {
  return { method, url, headers: [...headers] };
}

export function toRequest({ method, url, headers }: CarriedRequest, body: Buffer): Request {
  const hasBody = body.length > 0 && method !== "GET" && method !== "HEAD";
  return new Request(url, {
    method,
    headers: headers as [string, string][],
    ...(hasBody ? { body: body as Uint8Array<ArrayBuffer> } : {}),
  });
}

export function toReply(response: Response, release?: () => void): ExchangeReply {
  const { status, statusText, headers, body } = response;
  const head: CarriedResponse = { status, statusText, headers: [...headers] };
  return { head, body, ...(release === undefined ? {} : { release }) };
}

/** The body of a response that agents' code has forgotten would keep its stream open. */
const forgotten = new FinalizationRegistry<Readable>((body) => body.destroy());

export function toResponse({ head, body }: ExchangeAnswer): Response {
  const { status, statusText, headers } = head as CarriedResponse;
  const stream = body === null ? null : toStream(body);
  if (stream !== null && body !== null) forgotten.register(stream, body);
  return new Response(stream, { status, statusText, headers: headers as [string, string][] });
}

function toStream(body: Readable): ReadableStream<Uint8Array<ArrayBuffer>> {
  // `toWeb` would make a complete stream of one that has failed already.
  if (body.errored !== null)
    return new ReadableStream({ start: (controller) => controller.error(body.errored) });
  return Readable.toWeb(body) as ReadableStream<Uint8Array<ArrayBuffer>>;
}
