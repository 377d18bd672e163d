import { List } from "./list.ts";
import { pathOf, type Query } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

/** One call of a gateway's log. */
export interface Call {
  readonly id: string;
  readonly created_at: string;
  readonly provider: string;
  readonly model: string;
  readonly model_type: string;
  readonly path: string;
  readonly method: string;
  /** Milliseconds to the end of the response. */
  readonly duration: number;
  readonly time_to_first_byte: number | null;
  readonly request_type: string;
  readonly request_content_type: string;
  readonly response_content_type: string;
  readonly status_code: number;
  readonly success: boolean;
  readonly cached: boolean;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly tokens_in_cached: number;
  readonly tokens_in_cache_write: number;
  readonly tokens_out_reasoning: number;
  /** US dollars; absent if the model's price is unknown. */
  readonly cost?: number;
  readonly custom_cost: boolean;
  /** A JSON object as text; absent if the request had none. */
  readonly metadata?: string;
  readonly step: number;
  readonly event_id: string | null;
  readonly user_agent: string;
  readonly authentication: boolean;
  /** Dialects of a call through a unified door: `chat`, `messages`, `responses`, `gemini`. Absent for other calls. */
  readonly client_dialect?: string;
  readonly provider_dialect?: string;
  /** Fields that were left out of a translated request, separated by commas. */
  readonly dropped?: string;
  readonly feedback: number | null;
  readonly score: number | null;
  readonly request_size: number;
  readonly response_size: number;
}

export interface CallDetail extends Call {
  readonly request_head?: string;
  readonly request_head_complete?: boolean;
  readonly response_head?: string;
  readonly response_head_complete?: boolean;
}

export interface CallFilter {
  readonly key: string;
  readonly operator: "eq" | "neq" | "contains" | "lt" | "gt";
  readonly value: readonly (string | number | boolean | null)[];
}

export interface CallSelection {
  readonly filters?: readonly CallFilter[] | undefined;
  /** Substring of the metadata. */
  readonly search?: string | undefined;
  readonly order_by?: string | undefined;
  readonly order_by_direction?: "asc" | "desc" | undefined;
}

export interface CallPatch {
  readonly feedback?: -1 | 1 | null;
  readonly score?: number | null;
  readonly metadata?: Readonly<Record<string, string | number | boolean | null>> | null;
}

export class LogsApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string, gatewayId: string) {
    this.#transport = transport;
    this.#path = accountPath + pathOf`/ai-gateway/gateways/${gatewayId}/logs`;
  }

  /** Lists calls, newest first by default. */
  list(
    selection: CallSelection & { per_page?: number | undefined } = {},
    options: RequestOptions = {},
  ): List<Call> {
    return new List(this.#transport, this.#path, toQuery(selection), options);
  }

  async get(id: string, options: RequestOptions = {}): Promise<CallDetail> {
    return this.#transport.result<CallDetail>("GET", this.#path + pathOf`/${id}`, options);
  }

  /** Changes feedback, score and metadata; null removes a value. */
  async edit(id: string, patch: CallPatch, options: RequestOptions = {}): Promise<Call> {
    const request = { body: patch, ...options };
    return this.#transport.result<Call>("PATCH", this.#path + pathOf`/${id}`, request);
  }

  /** Deletes the matching calls, all calls if there are no filters. Resolves to the number of deleted calls. */
  async delete(
    selection: CallSelection & { limit?: number } = {},
    options: RequestOptions = {},
  ): Promise<number> {
    const request = { query: toQuery(selection), ...options };
    return (await this.#transport.result<{ deleted: number }>("DELETE", this.#path, request)).deleted;
  }

  /** Resolves to a response with the stored request body. */
  async request(id: string, options: RequestOptions = {}): Promise<Response> {
    return this.#transport.raw("GET", this.#path + pathOf`/${id}/request`, options);
  }

  /** Resolves to a response with the stored response body; for a streamed call, the text of the stream. */
  async response(id: string, options: RequestOptions = {}): Promise<Response> {
    return this.#transport.raw("GET", this.#path + pathOf`/${id}/response`, options);
  }
}

function toQuery({ filters, ...rest }: CallSelection): Query {
  return { ...rest, ...(filters === undefined ? {} : { filters: JSON.stringify(filters) }) };
}
