/** Filters of the log interface that are not fields of a call. */

/** Properties of the original that have the same value for every call here; a filter on them matches all rows or none. */
export const CONSTANT_KEYS: Readonly<Record<string, string | null>> = {
  wholesale: "false",
  compatibilityMode: "false",
};

/** Filters as single parameters, the older form: parameter → key and operator. */
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
