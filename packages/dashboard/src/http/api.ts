/** The dashboard's requests to the service. The browser's session cookie is the credential. */
import {
  type ApiResponse,
  type ApiRequest,
  type Method,
  type Query,
  SignalboxApiError,
  SignalboxClient,
  Transport,
  type TransportOptions,
  withQuery as appendQuery,
} from "@signalbox/client";

import { connectionLost, connectionWorks, isServiceAway, watchRequest } from "./connection.ts";

export { SignalboxApiError as ApiError } from "@signalbox/client";

/** The error of a request without an answer; requests through `transport` have it already. */
export function unreachable(cause?: unknown): SignalboxApiError {
  return new SignalboxApiError({ status: 0, code: 0, message: "The server cannot be reached.", cause });
}

/** Dispatched on `window` if the service no longer accepts the session; the app then shows the login page. */
export const SESSION_LOST = "signalbox:session-lost";

export interface Call extends ApiRequest {
  readonly method?: Method;
}

const OPTIONS: TransportOptions = {
  // A page shows an error at once; the user repeats the request.
  maxAttempts: 1,
  timeoutMs: 0,
  async fetch(input, init) {
    const sent = fetch(input, init);
    // What a user starts may take its time; what a page reads should not.
    const response = await (init?.method === "GET" ? watchRequest(sent) : sent).catch((error: unknown) => {
      if (init?.signal?.aborted !== true) connectionLost();
      throw error;
    });
    if (isServiceAway(response)) connectionLost();
    else connectionWorks();
    if (response.status === 401) dispatchEvent(new Event(SESSION_LOST));
    return response;
  },
};

export const transport = new Transport(OPTIONS);

/** The management interface by resource; `useAccount` returns the part of the current account. */
export const client = new SignalboxClient(OPTIONS);

/** Resolves to the result and its paging information. */
export function request<T>(path: string, { method = "GET", ...rest }: Call = {}): Promise<ApiResponse<T>> {
  return transport.request<T>(method, path, rest);
}

/** Resolves to the result. */
export function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return transport.result<T>("GET", path, signal === undefined ? {} : { signal });
}

/** Resolves to the response itself, for bodies without an envelope. */
export function readRaw(path: string, signal: AbortSignal): Promise<Response> {
  return transport.raw("GET", path, { signal });
}

/** Appends the parameters to a path. Empty text, the value of an unused filter, is omitted. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  return appendQuery(path, Object.fromEntries(given));
}
