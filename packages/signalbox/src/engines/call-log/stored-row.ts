/** A row of the `call` table, and the port's view of it. */
import type { CallRow, GatewayRef } from "./call-log.ts";

export interface CallColumns {
  readonly seq: number;
  readonly id: string;
  readonly created_at: number;
  readonly provider: string;
  readonly model: string;
  readonly path: string;
  readonly method: string;
  readonly request_type: string;
  readonly request_content_type: string;
  readonly response_content_type: string;
  readonly status_code: number;
  readonly success: number;
  readonly duration_ms: number;
  readonly first_byte_ms: number | null;
  readonly cached: number;
  readonly step: number;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly tokens_in_cached: number;
  readonly tokens_in_cache_write: number;
  readonly tokens_out_reasoning: number;
  readonly cost: number | null;
  readonly is_custom_cost: number;
  readonly metadata: string | null;
  readonly event_id: string | null;
  readonly user_agent: string;
  readonly token_id: string | null;
  readonly request_bytes: number;
  readonly response_bytes: number;
  readonly has_request_body: number;
  readonly has_response_body: number;
  readonly request_body_complete: number;
  readonly response_body_complete: number;
  readonly feedback: number | null;
  readonly score: number | null;
}

export function toCallRow(row: CallColumns, gateway: GatewayRef): CallRow {
  return {
    id: row.id,
    accountId: gateway.accountId,
    gatewayId: gateway.gatewayId,
    createdAt: row.created_at,
    provider: row.provider,
    model: row.model,
    path: row.path,
    method: row.method,
    requestType: row.request_type,
    requestContentType: row.request_content_type,
    responseContentType: row.response_content_type,
    statusCode: row.status_code,
    success: row.success === 1,
    durationMs: row.duration_ms,
    firstByteMs: row.first_byte_ms,
    cached: row.cached === 1,
    step: row.step,
    usage: {
      tokensIn: row.tokens_in,
      tokensOut: row.tokens_out,
      tokensInCached: row.tokens_in_cached,
      tokensInCacheWrite: row.tokens_in_cache_write,
      tokensOutReasoning: row.tokens_out_reasoning,
    },
    cost: row.cost,
    isCustomCost: row.is_custom_cost === 1,
    metadata: row.metadata,
    eventId: row.event_id,
    userAgent: row.user_agent,
    tokenId: row.token_id,
    requestBytes: row.request_bytes,
    responseBytes: row.response_bytes,
    requestBodyComplete: row.request_body_complete === 1,
    responseBodyComplete: row.response_body_complete === 1,
    hasRequestBody: row.has_request_body === 1,
    hasResponseBody: row.has_response_body === 1,
    feedback: row.feedback,
    score: row.score,
  };
}
