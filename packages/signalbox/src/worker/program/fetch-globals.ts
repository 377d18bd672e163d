/**
 * `Request` and `fetch` as programs for the originals' runtime use them: they pass requests and responses on as they are, which Node's own do not allow.
 *
 * 1. A body that is a stream needs no `duplex`.
 * 2. A request that is sent to another address has the host and the framing of that address, not those it arrived with.
 * 3. A response whose body was decoded has no `content-encoding` and `content-length` of the encoded body, so it can be answered as it is.
 * 4. The length of any other body is known as long as the program passes that body on.
 * 5. `cf` of a request is what its options say, or that of the request it was made from.
 */
import { knowLength } from "../body-lengths.ts";

/** Written by the client for its own connection. */
const FRAMING = ["host", "content-length", "expect", "keep-alive", "transfer-encoding", "connection"];

type FetchInit = RequestInit & { readonly duplex?: "half"; readonly cf?: unknown };

export function addFetchGlobals(): void {
  const { fetch, Request: NodeRequest } = globalThis;
  const StreamingRequest = new Proxy(NodeRequest, {
    construct(target, [input, init]: [string | URL | Request, FetchInit?], newTarget) {
      const request = Reflect.construct(target, [input, withDuplex(init)], newTarget) as Request;
      const cf = init?.cf ?? (input as { readonly cf?: unknown }).cf;
      if (cf !== undefined) Object.defineProperty(request, "cf", { value: cf, configurable: true });
      return request;
    },
  });
  globalThis.Request = StreamingRequest;
  globalThis.fetch = async (input, init) => {
    const given = input instanceof Request ? input.headers : undefined;
    const headers = new Headers(init?.headers ?? given);
    for (const name of FRAMING) headers.delete(name);
    return decoded(await fetch(input, { ...withDuplex(init), headers }));
  };
}

function withDuplex(init: FetchInit | undefined): FetchInit | undefined {
  return init?.body instanceof ReadableStream ? { ...spread(init), duplex: "half" } : init;
}

/** A `Request` may stand where options do; its members are getters, which spreading would lose. */
function spread(init: FetchInit): FetchInit {
  if (!(init instanceof Request)) return init;
  const { method, headers, body, signal, redirect } = init;
  return { method, headers, body, signal, redirect };
}

function decoded(response: Response): Response {
  if (response.body === null) return response;
  if (!response.headers.has("content-encoding")) {
    const length = response.headers.get("content-length");
    if (length !== null) knowLength(response.body, Number(length));
    return response;
  }
  const headers = new Headers(response.headers);
  headers.delete("content-encoding");
  headers.delete("content-length");
  const { status, statusText, url, redirected } = response;
  const copy = new Response(response.body, { status, statusText, headers });
  Object.defineProperty(copy, "url", { value: url });
  Object.defineProperty(copy, "redirected", { value: redirected });
  return copy;
}
