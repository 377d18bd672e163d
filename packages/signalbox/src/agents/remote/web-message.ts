/** Requests and responses of the Fetch API between two nodes. */
import type { Readable } from "node:stream";
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

/**
 * All that arrived since the last read is one piece: a reader that is behind is not held up by the number of small ones. The body keeps no
 * reference to the stream, so that a forgotten one is collected.
 */
function toStream(body: Readable): ReadableStream<Uint8Array<ArrayBuffer>> {
  const pieces = body.iterator() as AsyncIterator<Buffer<ArrayBuffer>, undefined>;
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => void body.destroy(),
    },
    { highWaterMark: 0 },
  );
}
