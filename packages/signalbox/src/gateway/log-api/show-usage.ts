/** The JSON form of usage. */
import { z } from "zod";
import { LATENCY_BUCKETS_MS, type UsageFigures, type UsageGroup } from "../../engines/call-log/index.ts";
import { percentile } from "./percentiles.ts";

export const usageResult = z.object({
  minute: z.iso.datetime().optional(),
  hour: z.iso.datetime().optional(),
  day: z.iso.datetime().optional(),
  gateway_id: z.string().optional(),
  provider: z.string().optional(),
  model: z.string().optional(),
  /** Value of the tag in `group_by`; null for gateways without the tag. */
  tag: z.string().nullable().optional(),
  token_id: z.string().nullable().optional(),
  /** For callers with `tokens.edit`; null for a revoked token. */
  token_name: z.string().nullable().optional(),
  owner: z.string().nullable().optional(),
  user: z.string().nullable().optional(),
  metadata: z.record(z.string(), z.string().nullable()).optional(),
  token_tags: z.record(z.string(), z.string().nullable()).optional(),
  /** The calls of all values beyond `limit`. */
  other: z.boolean().optional(),
  calls: z.number(),
  errors: z.number(),
  cached: z.number(),
  tokens_in: z.number(),
  tokens_out: z.number(),
  tokens_in_cached: z.number(),
  tokens_out_reasoning: z.number(),
  cost: z.number(),
  duration_avg: z.number().nullable(),
  duration_p50: z.number().nullable(),
  duration_p95: z.number().nullable(),
  duration_p99: z.number().nullable(),
  /** Calls with a duration of at most `le` milliseconds and above the previous bound; null: no bound. */
  /** Of streamed answers: the time to the first byte, which is about that of the first token. Null without streams. */
  streams: z.number(),
  time_to_first_token_p50: z.number().nullable(),
  time_to_first_token_p95: z.number().nullable(),
  time_to_first_token_p99: z.number().nullable(),
  durations: z.array(z.object({ le: z.number().nullable(), calls: z.number() })),
});

export function showUsage(one: UsageFigures, groups: readonly UsageGroup[]): z.input<typeof usageResult> {
  const start = one.time === null ? undefined : new Date(one.time).toISOString();
  return {
    ...(groups.includes("minute") ? { minute: start } : {}),
    ...(groups.includes("hour") ? { hour: start } : {}),
    ...(groups.includes("day") ? { day: start } : {}),
    ...(groups.includes("gateway") ? { gateway_id: one.gatewayId ?? "" } : {}),
    ...(groups.includes("provider") ? { provider: one.provider ?? "" } : {}),
    ...(groups.includes("model") ? { model: one.model ?? "" } : {}),
    calls: one.calls,
    errors: one.errors,
    cached: one.cached,
    tokens_in: one.tokensIn,
    tokens_out: one.tokensOut,
    tokens_in_cached: one.tokensInCached,
    tokens_out_reasoning: one.tokensOutReasoning,
    cost: one.cost,
    duration_avg: one.calls === 0 ? null : Math.round((one.durationMs / one.calls) * 100) / 100,
    duration_p50: percentile(one.latency, 0.5),
    duration_p95: percentile(one.latency, 0.95),
    duration_p99: percentile(one.latency, 0.99),
    streams: one.firstToken.reduce((sum, count) => sum + count, 0),
    time_to_first_token_p50: percentile(one.firstToken, 0.5),
    time_to_first_token_p95: percentile(one.firstToken, 0.95),
    time_to_first_token_p99: percentile(one.firstToken, 0.99),
    durations: one.latency.map((calls, i) => ({ le: LATENCY_BUCKETS_MS[i] ?? null, calls })),
  };
}
