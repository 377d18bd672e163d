import type { RequestOptions, Transport } from "./transport.ts";

export interface UsageQuery {
  /**
   * `minute`, `hour` or `day`, `provider`, `model`, `gateway`, `tag:<key>`; `token`, `owner`, `user`, `metadata:<key>`, `token_tag:<key>`. Default: one row
   * with the totals.
   */
  readonly group_by?: readonly string[];
  readonly start?: string;
  readonly end?: string;
  readonly gateway_id?: readonly string[];
  /** Tag filters that the gateways must match. */
  readonly tag?: readonly string[];
  /** Only the calls of a token, owner, user or metadata value: `owner=ada`, `metadata:team=search`. */
  readonly only?: readonly string[];
  /** Number of tokens, owners, users or metadata values; the rest is one row with `other`. Default 100. */
  readonly limit?: number;
}

export interface Usage {
  readonly minute?: string;
  readonly hour?: string;
  readonly day?: string;
  readonly gateway_id?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly tag?: string | null;
  readonly token_id?: string | null;
  readonly token_name?: string | null;
  readonly owner?: string | null;
  readonly user?: string | null;
  readonly metadata?: Readonly<Record<string, string | null>>;
  readonly token_tags?: Readonly<Record<string, string | null>>;
  /** The calls of all values beyond `limit`. */
  readonly other?: boolean;
  readonly calls: number;
  readonly errors: number;
  readonly cached: number;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly tokens_in_cached: number;
  readonly tokens_out_reasoning: number;
  /** US dollars. */
  readonly cost: number;
  readonly duration_avg: number | null;
  readonly duration_p50: number | null;
  readonly duration_p95: number | null;
  readonly duration_p99: number | null;
  /** Streamed answers, and the time to their first byte. */
  readonly streams: number;
  readonly time_to_first_token_p50: number | null;
  readonly time_to_first_token_p95: number | null;
  readonly time_to_first_token_p99: number | null;
  readonly durations: readonly { readonly le: number | null; readonly calls: number }[];
}

/** Resolves to a response with usage as CSV. */
export async function exportUsage(
  transport: Transport,
  accountPath: string,
  query: UsageQuery,
  options: RequestOptions,
): Promise<Response> {
  const request = { query: { ...query, format: "csv" }, ...options };
  return transport.raw("GET", `${accountPath}/ai-gateway/usage`, request);
}

/** Reads calls, tokens, cost and durations of an account. */
export async function readUsage(
  transport: Transport,
  accountPath: string,
  query: UsageQuery,
  options: RequestOptions,
): Promise<Usage[]> {
  const request = { query: { ...query }, ...options };
  return transport.result<Usage[]>("GET", `${accountPath}/ai-gateway/usage`, request);
}
