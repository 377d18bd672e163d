/** A call as the log interface shows it: the fields the `cloudflare` SDK types, and ours behind them. */
import { z } from "zod";
import type { CallRow, StoredBody } from "../../engines/call-log/index.ts";

/** Beginning of a body that the detail shows; the whole one has a path of its own. */
export const HEAD_BYTES = 4096;

export const callResult = z.object({
  id: z.string(),
  created_at: z.iso.datetime(),
  provider: z.string(),
  model: z.string(),
  model_type: z.string(),
  path: z.string(),
  method: z.string(),
  /** Milliseconds to the end of the response. */
  duration: z.number(),
  /** Milliseconds to the response's first byte; null when none came. */
  time_to_first_byte: z.number().nullable(),
  request_type: z.string(),
  request_content_type: z.string(),
  response_content_type: z.string(),
  status_code: z.number(),
  success: z.boolean(),
  cached: z.boolean(),
  tokens_in: z.number(),
  tokens_out: z.number(),
  tokens_in_cached: z.number(),
  tokens_in_cache_write: z.number(),
  tokens_out_reasoning: z.number(),
  /** US dollars; absent when the model's price is unknown. */
  cost: z.number().optional(),
  custom_cost: z.boolean(),
  /** Serialised JSON object; absent when the request had none. */
  metadata: z.string().optional(),
  step: z.number(),
  event_id: z.string().nullable(),
  user_agent: z.string(),
  /** Whether a gateway token authorised the call. */
  authentication: z.boolean(),
  feedback: z.number().nullable(),
  score: z.number().nullable(),
  request_size: z.number(),
  response_size: z.number(),
});

export const callDetail = callResult.extend({
  request_head: z.string().optional(),
  request_head_complete: z.boolean().optional(),
  response_head: z.string().optional(),
  response_head_complete: z.boolean().optional(),
  /** Present and true when the body had been stored and was removed to keep the log within its size. */
  request_body_removed: z.literal(true).optional(),
  response_body_removed: z.literal(true).optional(),
});

export function showCall(row: CallRow): z.input<typeof callResult> {
  return {
    id: row.id,
    created_at: new Date(row.createdAt).toISOString(),
    provider: row.provider,
    model: row.model,
    model_type: row.requestType,
    path: row.path,
    method: row.method,
    duration: row.durationMs,
    time_to_first_byte: row.firstByteMs,
    request_type: row.requestType,
    request_content_type: row.requestContentType,
    response_content_type: row.responseContentType,
    status_code: row.statusCode,
    success: row.success,
    cached: row.cached,
    tokens_in: row.usage.tokensIn,
    tokens_out: row.usage.tokensOut,
    tokens_in_cached: row.usage.tokensInCached,
    tokens_in_cache_write: row.usage.tokensInCacheWrite,
    tokens_out_reasoning: row.usage.tokensOutReasoning,
    ...(row.cost === null ? {} : { cost: row.cost }),
    custom_cost: row.isCustomCost,
    ...(row.metadata === null ? {} : { metadata: row.metadata }),
    step: row.step,
    event_id: row.eventId,
    user_agent: row.userAgent,
    authentication: row.tokenId !== null,
    feedback: row.feedback,
    score: row.score,
    request_size: row.requestBytes,
    response_size: row.responseBytes,
  };
}

/** The head of each body that was kept, whole characters only. */
export function showCallDetail(
  row: CallRow,
  request: StoredBody | null,
  response: StoredBody | null,
): z.input<typeof callDetail> {
  return {
    ...showCall(row),
    ...(request === null
      ? {}
      : { request_head: headText(request), request_head_complete: isWholeHead(request, row.requestBytes) }),
    ...(response === null
      ? {}
      : {
          response_head: headText(response),
          response_head_complete: isWholeHead(response, row.responseBytes),
        }),
    ...(row.hasRequestBody && request === null ? { request_body_removed: true } : {}),
    ...(row.hasResponseBody && response === null ? { response_body_removed: true } : {}),
  };
}

function headText(body: StoredBody): string {
  // As part of a stream, so that a character cut in two is left out instead of replaced.
  return new TextDecoder().decode(body.bytes, { stream: true });
}

function isWholeHead(body: StoredBody, size: number): boolean {
  return body.isComplete && size <= body.bytes.length;
}
