import type { RequestOptions, Transport } from "./transport.ts";

export interface UsageQuery {
  /** `hour` or `day`, `provider`, `model`, `gateway`, `tag:<key>`. Default: one row with the totals. */
  readonly group_by?: readonly string[];
  readonly start?: string;
  readonly end?: string;
  readonly gateway_id?: readonly string[];
  /** Tag filters that the gateways must match. */
  readonly tag?: readonly string[];
}

export interface Usage {
  readonly hour?: string;
  readonly day?: string;
  readonly gateway_id?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly tag?: string | null;
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
  readonly durations: readonly { readonly le: number | null; readonly calls: number }[];
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
