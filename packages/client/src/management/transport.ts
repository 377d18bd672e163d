/**
 * Sends requests to the management interface and reads its response envelope.
 *
 * 1. A request is repeated only if its method is idempotent and the service named a delay (429 or 503 with `Retry-After`).
 * 2. The token is sent in the `Authorization` header only. It appears in no URL and no error.
 * 3. Every failure except an abort or a timeout is a `SignalboxApiError`.
 */
import type { ErrorName } from "@signalbox/protocol";
import { SignalboxApiError } from "./api-error.ts";
import { type Query, withQuery } from "./path.ts";
import { parseRetryAfter } from "./retry-after.ts";

export interface TransportOptions {
  /** Address of the service, e.g. `http://127.0.0.1:8787`; default: the page's own origin. */
  readonly url?: string | URL;
  /** A function is called for every request. If absent, no token is sent; a browser then sends its session cookie. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>);
  /** Time limit of one attempt, body included. Default 30,000; 0: no limit. */
  readonly timeoutMs?: number;
  /** Total number of attempts for requests that are safe to repeat. Default 3. */
  readonly maxAttempts?: number;
  /** If `Retry-After` is longer than this, the request fails instead of waiting. Default 30,000. */
  readonly maxRetryAfterMs?: number;
  readonly fetch?: typeof fetch;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  /** Overrides the client's `timeoutMs`. */
  readonly timeoutMs?: number;
}

export interface ApiRequest extends RequestOptions {
  readonly query?: Query | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface ResultInfo {
  readonly count?: number;
  readonly cursor?: string | null;
  readonly page?: number;
  readonly per_page?: number;
  readonly total_count?: number;
  readonly has_more?: boolean;
  /** Usage by whom: the number of values in the row with `other`, and since when calls are counted if there are too many. */
  readonly other_values?: number;
  readonly counted_from?: string | null;
  /** Usage by whom: `other` may have calls of the values that are listed, because there were more than the log tells apart. */
  readonly is_bounded?: boolean;
  /** Searches: calls that were looked at. A short page with a cursor is a search that has not ended. */
  readonly scanned?: number;
}

export interface ApiResponse<Result> {
  readonly result: Result;
  readonly info: ResultInfo;
  /** Identifies the state of settings; `If-Match` takes it. Undefined for resources without one. */
  readonly etag?: string | undefined;
}

interface Envelope {
  readonly success: boolean;
  readonly errors: readonly { readonly code: number; readonly message: string }[];
  readonly result: unknown;
  readonly result_info?: ResultInfo;
}

type ErrorNames = (code: number) => ErrorName | undefined;

const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "PUT", "DELETE"]);

export class Transport {
  readonly #options: TransportOptions;
  readonly #errorName: ErrorNames | undefined;
  readonly #base: string;

  /** `errorName` fills in `id` of errors. It is a parameter so that a browser page can leave out the error table. */
  constructor(options: TransportOptions, errorName?: ErrorNames) {
    const base = options.url ?? (globalThis as { location?: { origin: string } }).location?.origin;
    if (base === undefined) throw new TypeError("url is required outside a browser");
    this.#options = options;
    this.#errorName = errorName;
    this.#base = new URL(base).href.replace(/\/+$/, "");
  }

  /** Address of the service, without a trailing slash. */
  get url(): string {
    return this.#base;
  }

  /** Resolves to `result` and `result_info` of the envelope. */
  async request<Result>(
    method: Method,
    path: string,
    request: ApiRequest = {},
  ): Promise<ApiResponse<Result>> {
    const response = await this.raw(method, path, request);
    if (response.status === 204) return { result: undefined as Result, info: {} };
    const text = await this.#readText(response, request);
    const envelope = parseEnvelope(text);
    if (envelope?.success !== true) throw this.#failure(response, method, path, text);
    const etag = response.headers.get("etag") ?? undefined;
    return { result: envelope.result as Result, info: envelope.result_info ?? {}, etag };
  }

  /** Resolves to `result` of the envelope. */
  async result<Result>(method: Method, path: string, request: ApiRequest = {}): Promise<Result> {
    return (await this.request<Result>(method, path, request)).result;
  }

  /** Resolves to the response itself, for bodies without an envelope. Throws if the status is not 2xx. */
  async raw(method: Method, path: string, request: ApiRequest = {}): Promise<Response> {
    const { maxAttempts = 3, maxRetryAfterMs = 30_000 } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const response = await this.#attempt(method, path, request);
      if (response.ok) return response;
      const error = this.#failure(response, method, path, await this.#readText(response, request));
      const waitMs = error.retryAfterMs;
      const isSafe = IDEMPOTENT.has(method) && (response.status === 429 || response.status === 503);
      if (!isSafe || attempt >= maxAttempts || waitMs === undefined || waitMs > maxRetryAfterMs) throw error;
      await sleep(waitMs, request.signal);
    }
  }

  async #attempt(method: Method, path: string, request: ApiRequest): Promise<Response> {
    const { token, fetch: send = fetch } = this.#options;
    const timeoutMs = request.timeoutMs ?? this.#options.timeoutMs ?? 30_000;
    const bearer = typeof token === "function" ? await token() : token;
    const signals = [request.signal, timeoutMs > 0 ? AbortSignal.timeout(timeoutMs) : undefined];
    const signal = AbortSignal.any(signals.filter((one) => one !== undefined));
    try {
      return await send(withQuery(this.#base + path, request.query ?? {}), {
        method,
        signal,
        headers: {
          accept: "application/json",
          ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
          ...(request.body === undefined ? {} : { "content-type": "application/json" }),
          ...request.headers,
        },
        ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      });
    } catch (error) {
      throw signal.aborted ? signal.reason : this.#unreachable(error);
    }
  }

  async #readText(response: Response, { signal }: RequestOptions): Promise<string> {
    try {
      return await response.text();
    } catch (error) {
      const isTimeout = error instanceof Error && error.name === "TimeoutError";
      throw signal?.aborted === true || isTimeout ? error : this.#unreachable(error);
    }
  }

  #failure(response: Response, method: Method, path: string, text: string): SignalboxApiError {
    const { status, headers } = response;
    const [first] = parseEnvelope(text)?.errors ?? [];
    const code = first?.code ?? 0;
    return new SignalboxApiError({
      status,
      code,
      id: this.#errorName?.(code),
      message:
        first?.message ?? `${method} ${path}: status ${status}, and the body is not a Signalbox response`,
      requestId: headers.get("x-request-id") ?? undefined,
      retryAfterMs: parseRetryAfter(headers.get("retry-after"), Date.now()) ?? undefined,
    });
  }

  #unreachable(error: unknown): SignalboxApiError {
    const message = `cannot reach ${this.#base}: ${reasonOf(error)}`;
    return new SignalboxApiError({ status: 0, code: 0, message, cause: error });
  }
}

/** Node's `fetch` puts the reason of a network error in `cause`, sometimes without a message. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error && cause.message !== "") return cause.message;
  return error instanceof Error ? error.message : String(error);
}

function parseEnvelope(text: string): Envelope | undefined {
  try {
    const value = JSON.parse(text) as Partial<Envelope> | null;
    return typeof value?.success === "boolean" && Array.isArray(value.errors)
      ? (value as Envelope)
      : undefined;
  } catch {
    return undefined;
  }
}

async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
