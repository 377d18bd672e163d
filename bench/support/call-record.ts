/** A stored call as the gateway records it, and the options of a log that stores it. */
import { ulid } from "../../packages/signalbox/src/core/ulid.ts";
import type { CallRecord } from "../../packages/signalbox/src/engines/call-log/call-log.ts";

function rethrow(error: Error): never {
  throw error;
}

export const LOG_OPTIONS = {
  maxAgeDays: 30,
  flushIntervalMs: 200,
  maxBodyBytes: 10_000_000,
  maxTotalBytes: 8 * 1024 ** 3,
  maxQueuedCalls: 10_000,
  maxQueuedBytes: 64_000_000,
  onError: rethrow,
  onFatal: rethrow,
};

export function callRecord(fields: Partial<CallRecord> = {}): CallRecord {
  const createdAt = fields.createdAt ?? Date.now();
  return {
    id: ulid(createdAt),
    accountId: "default",
    gatewayId: "default",
    createdAt,
    provider: "openai",
    model: "gpt-5-mini",
    path: "chat/completions",
    method: "POST",
    requestType: "chat",
    requestContentType: "application/json",
    responseContentType: "application/json",
    statusCode: 200,
    success: true,
    durationMs: 312.5,
    firstByteMs: 210,
    cached: false,
    step: 0,
    tokensIn: 812,
    tokensOut: 140,
    tokensInCached: 512,
    tokensInCacheWrite: 0,
    tokensOutReasoning: 64,
    cost: 0.0011,
    isCustomCost: false,
    usageState: "reported",
    isCostEstimated: false,
    metadata: '{"user":"ada"}',
    eventId: null,
    userAgent: "OpenAI/JS 6.49.0",
    tokenId: null,
    clientDialect: null,
    providerDialect: null,
    dropped: null,
    guardrailAction: null,
    dlpAction: null,
    guardrails: null,
    attempts: null,
    requestBytes: 1024,
    responseBytes: 1024,
    requestBody: null,
    responseBody: null,
    requestBodyComplete: true,
    responseBodyComplete: true,
    ...fields,
  };
}
