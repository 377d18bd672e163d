/**
 * One request to the management interface: JSON in, the envelope's contents out.
 *
 * 1. Only what is safe is tried again: idempotent methods, and only when the service itself said when to come back (429 or 503 with
 *    `Retry-After`). Anything else is the caller's decision.
 * 2. The token is in the header only: never in an address, never in an error.
 * 3. Every failure but an abort or timeout is a `SignalboxApiError`.
 */
import { SignalboxApiError } from "./api-error.ts";
import { parseRetryAfter } from "./retry-after.ts";

export interface TransportOptions {
  /** Address of the service, e.g. `http://127.0.0.1:8787`; default: the page's own origin. */
  readonly url?: string | URL;
  /** A function is asked for every request. Absent: none is sent, and a browser's session cookie counts. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>);
  /** For one attempt. Default 30,000; 0 means no limit. */
  readonly timeoutMs?: number;
  /** Attempts in all, for requests that are safe to repeat. Default 3. */
  readonly maxAttempts?: number;
  /** A longer `Retry-After` is not waited for. Default 30,000. */
  readonly maxRetryAfterMs?: number;
  readonly fetch?: typeof fetch;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
}

export type QueryValue = string | number | boolean | null | undefined;
/** A list repeats the parameter; null and undefined leave it out. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[]>>;

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
}

export interface ApiAnswer<Result> {
  readonly result: Result;
  readonly info: ResultInfo;
}

interface Envelope {
  readonly success: boolean;
  readonly errors: readonly { readonly code: number; readonly message: string }[];
  readonly result: unknown;
  readonly result_info?: ResultInfo;
}

const IDEMPOTENT: ReadonlySet<string> = new Set(["GET", "PUT", "DELETE"]);

export class Transport {
  readonly #options: TransportOptions;
  readonly #base: string;

  constructor(options: TransportOptions) {
    const base = options.url ?? (globalThis as { location?: { origin: string } }).location?.origin;
    if (base === undefined) throw new TypeError("url is required outside a browser");
    this.#options = options;
    this.#base = new URL(base).href.replace(/\/+$/, "");
  }

  /** Address of the service, without a slash at its end. */
  get url(): string {
    return this.#base;
  }

  /** The envelope's contents. */
  async request<Result>(method: Method, path: string, request: ApiRequest = {}): Promise<ApiAnswer<Result>> {
    const response = await this.raw(method, path, request);
    const envelope = response.status === 204 ? null : parseEnvelope(await response.text());
    if (envelope === undefined) throw failure(response, method, path, undefined);
    return { result: envelope?.result as Result, info: envelope?.result_info ?? {} };
  }

  /** The envelope's `result` alone. */
  async result<Result>(method: Method, path: string, request: ApiRequest = {}): Promise<Result> {
    return (await this.request<Result>(method, path, request)).result;
  }

  /** The response as it came, for bodies that are not in the envelope; a failure throws. */
  async raw(method: Method, path: string, request: ApiRequest = {}): Promise<Response> {
    const { maxAttempts = 3, maxRetryAfterMs = 30_000 } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const response = await this.#attempt(method, path, request);
      if (response.ok) return response;
      const error = failure(response, method, path, await response.text());
      const waitMs = error.retryAfterMs;
      const isSafe = IDEMPOTENT.has(method) && (response.status === 429 || response.status === 503);
      if (!isSafe || attempt >= maxAttempts || waitMs === undefined || waitMs > maxRetryAfterMs) throw error;
      await sleep(waitMs, request.signal);
    }
  }

  async #attempt(method: Method, path: string, request: ApiRequest): Promise<Response> {
    const { token, timeoutMs = 30_000, fetch: send = fetch } = this.#options;
    const bearer = typeof token === "function" ? await token() : token;
    const signals = [request.signal, timeoutMs > 0 ? AbortSignal.timeout(timeoutMs) : undefined];
    const signal = AbortSignal.any(signals.filter((one) => one !== undefined));
    try {
      return await send(this.#base + path + queryText(request.query), {
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
      if (signal.aborted) throw signal.reason;
      const why =
        error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new SignalboxApiError({
        status: 0,
        code: 0,
        message: `${method} ${this.#base}${path} failed: ${why}`,
        cause: error,
      });
    }
  }
}

/** `/accounts/a%2Fb/…`: names go into paths encoded. A dot segment cannot be encoded, and no resource is called so. */
export function pathOf(strings: TemplateStringsArray, ...names: readonly string[]): string {
  return String.raw({ raw: strings }, ...names.map(encodeName));
}

function encodeName(name: string): string {
  if (name === "" || name === "." || name === "..") throw new TypeError(`"${name}" cannot stand in a path`);
  return encodeURIComponent(name);
}

function queryText(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? (value as readonly QueryValue[]) : [value as QueryValue]) {
      if (one !== null && one !== undefined) parameters.append(name, String(one));
    }
  }
  return parameters.size === 0 ? "" : `?${parameters.toString()}`;
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

function failure(
  response: Response,
  method: Method,
  path: string,
  text: string | undefined,
): SignalboxApiError {
  const [first] = text === undefined ? [] : (parseEnvelope(text)?.errors ?? []);
  const asked = parseRetryAfter(response.headers.get("retry-after"), Date.now());
  return new SignalboxApiError({
    status: response.status,
    code: first?.code ?? 0,
    message:
      first?.message ?? `${method} ${path}: status ${response.status} with an answer that is not Signalbox's`,
    requestId: response.headers.get("x-request-id") ?? undefined,
    retryAfterMs: asked ?? undefined,
  });
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
