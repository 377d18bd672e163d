/** The filters of the log interface: their names as the `cloudflare` SDK has them, and the field and kind of value behind each. */
import type { CallField, CallOrder } from "../../engines/call-log/index.ts";

export type ValueKind = "text" | "number" | "boolean" | "time";

interface FilterKey {
  readonly field: CallField;
  readonly kind: ValueKind;
}

export const FILTER_KEYS: Readonly<Record<string, FilterKey>> = {
  id: { field: "id", kind: "text" },
  created_at: { field: "createdAt", kind: "time" },
  request_content_type: { field: "requestContentType", kind: "text" },
  response_content_type: { field: "responseContentType", kind: "text" },
  request_type: { field: "requestType", kind: "text" },
  model_type: { field: "requestType", kind: "text" },
  success: { field: "success", kind: "boolean" },
  cached: { field: "cached", kind: "boolean" },
  provider: { field: "provider", kind: "text" },
  model: { field: "model", kind: "text" },
  cost: { field: "cost", kind: "number" },
  tokens: { field: "tokens", kind: "number" },
  tokens_in: { field: "tokensIn", kind: "number" },
  tokens_out: { field: "tokensOut", kind: "number" },
  duration: { field: "duration", kind: "number" },
  feedback: { field: "feedback", kind: "number" },
  event_id: { field: "eventId", kind: "text" },
  "metadata.key": { field: "metadataKey", kind: "text" },
  "metadata.value": { field: "metadataValue", kind: "text" },
  authentication: { field: "isAuthenticated", kind: "boolean" },
  user_agent: { field: "userAgent", kind: "text" },
  status_code: { field: "statusCode", kind: "number" },
  path: { field: "path", kind: "text" },
};

/** Properties that the original has and every call here has in the same way; a filter on them fits all rows or none. */
export const CONSTANT_KEYS: Readonly<Record<string, string | null>> = {
  wholesale: "false",
  compatibilityMode: "false",
  dlp_action: null,
};

export const ORDER_KEYS: Readonly<Record<string, CallOrder>> = {
  created_at: "createdAt",
  provider: "provider",
  model: "model",
  model_type: "requestType",
  success: "success",
  cached: "cached",
  cost: "cost",
  tokens_in: "tokensIn",
  tokens_out: "tokensOut",
  duration: "duration",
  feedback: "feedback",
};

/** The older way to filter, one parameter each. */
export const SIMPLE_FILTERS: Readonly<
  Record<string, { readonly key: string; readonly operator: "eq" | "gte" | "lte" }>
> = {
  cached: { key: "cached", operator: "eq" },
  success: { key: "success", operator: "eq" },
  provider: { key: "provider", operator: "eq" },
  model: { key: "model", operator: "eq" },
  model_type: { key: "model_type", operator: "eq" },
  request_content_type: { key: "request_content_type", operator: "eq" },
  response_content_type: { key: "response_content_type", operator: "eq" },
  feedback: { key: "feedback", operator: "eq" },
  start_date: { key: "created_at", operator: "gte" },
  end_date: { key: "created_at", operator: "lte" },
  min_cost: { key: "cost", operator: "gte" },
  max_cost: { key: "cost", operator: "lte" },
  min_duration: { key: "duration", operator: "gte" },
  max_duration: { key: "duration", operator: "lte" },
  min_tokens_in: { key: "tokens_in", operator: "gte" },
  max_tokens_in: { key: "tokens_in", operator: "lte" },
  min_tokens_out: { key: "tokens_out", operator: "gte" },
  max_tokens_out: { key: "tokens_out", operator: "lte" },
  min_total_tokens: { key: "tokens", operator: "gte" },
  max_total_tokens: { key: "tokens", operator: "lte" },
};
