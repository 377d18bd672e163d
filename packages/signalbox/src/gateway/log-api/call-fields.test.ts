import { expect, it } from "vitest";
import type { CallRow } from "../../engines/call-log/index.ts";
import { callResult, FILTER_KEYS, ORDER_KEYS, showCall } from "./call-fields.ts";
import { unreadableMessages } from "./unreadable-days.ts";

const ROW: CallRow = {
  id: "01M7FH87G00000000000000000",
  accountId: "default",
  gatewayId: "main",
  createdAt: Date.parse("2026-11-15T12:00:00Z"),
  provider: "openai",
  model: "gpt-5-mini",
  path: "chat/completions",
  method: "POST",
  requestType: "chat",
  requestContentType: "application/json",
  responseContentType: "text/event-stream",
  statusCode: 200,
  success: true,
  durationMs: 12.5,
  firstByteMs: null,
  cached: false,
  step: 1,
  tokensIn: 5,
  tokensOut: 4,
  tokensInCached: 3,
  tokensInCacheWrite: 2,
  tokensOutReasoning: 1,
  cost: 0.5,
  isCustomCost: true,
  usageState: "reported",
  isCostEstimated: false,
  metadata: "{}",
  eventId: null,
  userAgent: "test/1",
  tokenId: "token",
  clientDialect: "messages",
  providerDialect: "chat",
  dropped: "top_k",
  guardrailAction: null,
  dlpAction: null,
  guardrails: null,
  attempts: null,
  requestBytes: 10,
  responseBytes: 20,
  hasRequestBody: true,
  hasResponseBody: false,
  requestBodyComplete: true,
  responseBodyComplete: true,
  feedback: null,
  score: 0.25,
};

it("shows a call under its public names, and valid for its schema", () => {
  const shown = showCall(ROW);
  expect(shown).toEqual({
    id: "01M7FH87G00000000000000000",
    created_at: "2026-11-15T12:00:00.000Z",
    provider: "openai",
    model: "gpt-5-mini",
    model_type: "chat",
    path: "chat/completions",
    method: "POST",
    duration: 12.5,
    time_to_first_byte: null,
    request_type: "chat",
    request_content_type: "application/json",
    response_content_type: "text/event-stream",
    status_code: 200,
    success: true,
    cached: false,
    tokens_in: 5,
    tokens_out: 4,
    tokens_in_cached: 3,
    tokens_in_cache_write: 2,
    tokens_out_reasoning: 1,
    cost: 0.5,
    custom_cost: true,
    usage: "reported",
    cost_estimated: false,
    metadata: "{}",
    step: 1,
    event_id: null,
    user_agent: "test/1",
    authentication: true,
    client_dialect: "messages",
    provider_dialect: "chat",
    dropped: "top_k",
    token_id: "token",
    feedback: null,
    score: 0.25,
    request_size: 10,
    response_size: 20,
  });
  expect(callResult.strict().parse(shown)).toEqual(shown);
});

it("leaves out an unknown cost and absent metadata", () => {
  const shown = showCall({ ...ROW, cost: null, metadata: null, tokenId: null });
  expect(Object.keys(shown)).not.toContain("cost");
  expect(Object.keys(shown)).not.toContain("metadata");
  expect(shown["authentication"]).toBe(false);
  expect(callResult.strict().parse(shown)).toEqual(shown);
});

it("offers the filters and orders of the interface", () => {
  const kinds = Object.entries(FILTER_KEYS).map(([name, { kind }]) => `${name}: ${kind}`);
  expect(kinds.toSorted()).toEqual(
    [
      "authentication: boolean",
      "cached: boolean",
      "client_dialect: text",
      "cost: number",
      "created_at: time",
      "dlp_action: text",
      "duration: number",
      "event_id: text",
      "feedback: number",
      "guardrail_action: text",
      "id: text",
      "metadata.key: text",
      "metadata.value: text",
      "model: text",
      "model_type: text",
      "path: text",
      "provider: text",
      "provider_dialect: text",
      "request_content_type: text",
      "request_type: text",
      "response_content_type: text",
      "status_code: number",
      "success: boolean",
      "tokens: number",
      "tokens_in: number",
      "tokens_out: number",
      "usage: text",
      "user_agent: text",
    ].toSorted(),
  );
  expect(Object.keys(ORDER_KEYS).toSorted()).toEqual(
    [
      "cached",
      "cost",
      "created_at",
      "duration",
      "feedback",
      "model",
      "model_type",
      "provider",
      "success",
      "tokens_in",
      "tokens_out",
    ].toSorted(),
  );
});

it("names the days that a list lacks", () => {
  expect(unreadableMessages({ unreadableDays: [] })).toEqual([]);
  expect(unreadableMessages({ unreadableDays: ["2026-11-15"] })).toEqual([
    "The calls of 2026-11-15 are not included: a later release has written their file",
  ]);
});
