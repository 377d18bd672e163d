/** The management interface as commands use it: JSON in, the envelope's result out. */

export class ManagementError extends Error {
  override readonly name = "ManagementError";
  readonly status: number;
  readonly code: number;

  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export interface Envelope {
  readonly success: boolean;
  readonly errors: readonly { readonly code: number; readonly message: string }[];
  readonly result: unknown;
  readonly result_info?: { readonly cursor?: string | null; readonly total_count?: number };
}

export class ManagementClient {
  readonly url: string;
  readonly #token: string;

  constructor(url: string, token: string) {
    this.url = url.replace(/\/+$/, "");
    this.#token = token;
  }

  async request<T>(method: string, path: string, body?: unknown): Promise<T> {
    return (await this.send(method, path, body)).result as T;
  }

  /** Follows `result_info.cursor` to the end of a list. */
  async list<T>(path: string): Promise<T[]> {
    const items: T[] = [];
    const separator = path.includes("?") ? "&" : "?";
    for (let cursor: string | null = ""; cursor !== null;) {
      const page = await this.send(
        "GET",
        cursor === "" ? path : `${path}${separator}cursor=${encodeURIComponent(cursor)}`,
      );
      items.push(...(page.result as T[]));
      cursor = page.result_info?.cursor ?? null;
    }
    return items;
  }

  /** The raw response, for bodies that are not an envelope. */
  fetch(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** The whole envelope of a success; a failure is thrown. */
  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Envelope> {
    let response: Response;
    try {
      response = await this.fetch(method, path, body, headers);
    } catch (cause) {
      throw new ManagementError(0, 0, `cannot reach ${this.url}: ${reasonOf(cause)}`);
    }
    const text = await response.text();
    if (response.status === 204) return { success: true, errors: [], result: null };
    const envelope = parseEnvelope(text);
    if (envelope === null)
      throw new ManagementError(
        response.status,
        0,
        `${this.url} did not answer as Signalbox does (${response.status})`,
      );
    if (!envelope.success) {
      const [error] = envelope.errors;
      throw new ManagementError(
        response.status,
        error?.code ?? 0,
        `${error?.message ?? "failed"} (code ${error?.code ?? response.status})`,
      );
    }
    return envelope;
  }
}

function parseEnvelope(text: string): Envelope | null {
  try {
    const value = JSON.parse(text) as Envelope;
    return typeof value.success === "boolean" && Array.isArray(value.errors) ? value : null;
  } catch {
    return null;
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error && cause.message !== "") return cause.message;
  return error instanceof Error ? error.message : String(error);
}
