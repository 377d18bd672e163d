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
  /** The token that authorised the call; absent if the gateway requires none. */
  readonly token_id?: string;
  /** Attempts upstream as a JSON list, if there was more than one or it began late. */
  readonly attempts?: string;
  /** The strictest action that a guardrail took; absent if none found anything. */
  readonly guardrail_action?: "block" | "mask" | "flag";
  readonly dlp_action?: "BLOCK" | "FLAG";
  /** JSON: a list of findings, with rule, owner, place, action, kind and count. */
  readonly guardrails?: string;
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

/** A call in the view of all gateways. */
export interface FoundCall extends Call {
  readonly gateway_id: string;
  /** The beginning of the last message of the user, and of the answer; null without stored text. */
  readonly prompt: string | null;
  readonly answer: string | null;
}

export interface CallNeighbours {
  readonly newer: string | null;
  readonly older: string | null;
}

export interface Replay {
  readonly status: number;
  readonly success: boolean;
  /** The row of the new call. */
  readonly log_id: string | null;
  readonly content_type: string;
  readonly answer: string;
  readonly answer_complete: boolean;
}

export interface FoundSelection extends Omit<CallSelection, "order_by" | "order_by_direction"> {
  /** Text in the prompt or the answer. */
  readonly q?: string | undefined;
  readonly gateway_id?: readonly string[] | undefined;
  readonly direction?: "asc" | "desc" | undefined;
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

  async neighbours(id: string, options: RequestOptions = {}): Promise<CallNeighbours> {
    return this.#transport.result<CallNeighbours>("GET", this.#path + pathOf`/${id}/neighbours`, options);
  }

  /** Resolves to a shell command; credentials are variables. */
  async curl(id: string, options: RequestOptions = {}): Promise<string> {
    return (await this.#transport.raw("GET", this.#path + pathOf`/${id}/curl`, options)).text();
  }

  /** Sends the request again, to another model with `model` (`provider/model`). It is a call of this client's token. */
  async replay(
    id: string,
    body: { model?: string | undefined } = {},
    options: RequestOptions = {},
  ): Promise<Replay> {
    return this.#transport.result<Replay>("POST", this.#path + pathOf`/${id}/replay`, { body, ...options });
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

/** The stored calls of all gateways of an account. */
export class AllLogsApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/ai-gateway/logs`;
  }

  /** Lists calls, newest first. A page of a search can be short although more follows. */
  list(
    selection: FoundSelection & { limit?: number | undefined } = {},
    options: RequestOptions = {},
  ): List<FoundCall> {
    return new List(this.#transport, this.#path, toQuery(selection), options);
  }

  /** Resolves to a response with one call per line, oldest first. */
  async export(
    selection: FoundSelection & { format?: "ndjson" | "csv" | undefined; bodies?: boolean | undefined } = {},
    options: RequestOptions = {},
  ): Promise<Response> {
    return this.#transport.raw("GET", `${this.#path}/export`, { query: toQuery(selection), ...options });
  }
}

function toQuery({ filters, ...rest }: CallSelection): Query {
  return { ...rest, ...(filters === undefined ? {} : { filters: JSON.stringify(filters) }) };
}
