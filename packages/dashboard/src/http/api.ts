/** The management interface as the pages use it: the browser's session is the credential, the envelope's result is the value. */

export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: number;

  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export interface Answer<T> {
  readonly result: T;
  readonly info: ResultInfo;
}

export interface ResultInfo {
  readonly count?: number;
  readonly total_count?: number;
  readonly page?: number;
  readonly per_page?: number;
  readonly cursor?: string | null;
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Fired when the server no longer knows the session, so that the page can ask for a login. */
export const SESSION_LOST = "signalbox:session-lost";

export async function ask<T>(path: string, call: Call = {}): Promise<Answer<T>> {
  const response = await send(path, call);
  if (response.status === 204) return { result: null as T, info: {} };
  const envelope = parse(await response.text());
  if (envelope?.success === true) return { result: envelope.result as T, info: envelope.result_info ?? {} };
  const error = envelope?.errors?.[0];
  if (response.status === 401) dispatchEvent(new Event(SESSION_LOST));
  throw new ApiError(
    response.status,
    error?.code ?? 0,
    error?.message ?? `The server answered ${response.status} without saying why.`,
  );
}

/** `ask` for those who only want the result. */
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask<T>(path, signal === undefined ? {} : { signal })).result;
}

export async function send(path: string, { method = "GET", body, signal, headers }: Call): Promise<Response> {
  try {
    return await fetch(path, {
      method,
      credentials: "same-origin",
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, 0, "The server cannot be reached. It may be restarting.");
  }
}

/** `path?query` without the empty ones; an array repeats its name. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>,
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  return search.size === 0 ? path : `${path}?${search}`;
}

interface Envelope {
  readonly success: boolean;
  readonly errors?: readonly { readonly code: number; readonly message: string }[];
  readonly result: unknown;
  readonly result_info?: ResultInfo;
}

function parse(text: string): Envelope | null {
  try {
    return JSON.parse(text) as Envelope;
  } catch {
    return null;
  }
}
