/** Writes the log row of a finished call. */
import type { CallRecord } from "../../engines/call-log/index.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";
import type { CallFigures } from "../limits/call-figures.ts";
import type { Step } from "../plan/plan-step.ts";
import type { CallParts, CallStart } from "./call-start.ts";

export interface CallResult {
  readonly step: Step;
  readonly stepIndex: number;
  readonly status: number;
  readonly isComplete: boolean;
  readonly isCached: boolean;
  readonly head: ResponseHead | null;
  readonly firstByteMs: number | null;
  readonly figures: CallFigures;
  readonly responseBytes: number;
  /** The response body, or its beginning. */
  readonly body: Buffer;
}

/** Records the call, unless logging is off or the gateway was deleted: a later gateway of that name would show the row. */
export function recordCall(parts: CallParts, start: CallStart, result: CallResult): void {
  const { accountId, id } = start.gateway;
  if (start.logDetail === "none" || parts.gateways.find(accountId, id) === undefined) return;
  parts.callLog.record(toCallRecord(start, result, parts.payloadBytes));
}

function toCallRecord(start: CallStart, result: CallResult, payloadBytes: number): CallRecord {
  const { step, figures } = result;
  const { usage } = figures;
  const isKept = start.logDetail === "bodies";
  const request = step.upstream.body;
  const sent = request.kind === "whole" ? request.bytes : request.kind === "streamed" ? request.start : null;
  const sentBytes = sent?.length ?? 0;
  const responseBody = isKept ? cut(result.body, payloadBytes) : null;
  return {
    id: start.id,
    accountId: start.gateway.accountId,
    gatewayId: start.gateway.id,
    createdAt: start.createdAt,
    provider: step.provider.slug,
    model: figures.model,
    path: step.path,
    method: step.upstream.method,
    requestType: step.requestType,
    requestContentType: start.request.headers["content-type"] ?? "",
    responseContentType: result.head?.contentType ?? "",
    statusCode: result.status,
    success: result.isComplete && result.status < 400,
    durationMs: performance.now() - start.startedAt,
    firstByteMs: result.firstByteMs,
    cached: result.isCached,
    step: result.stepIndex,
    tokensIn: usage.tokensIn,
    tokensOut: usage.tokensOut,
    tokensInCached: usage.tokensInCached,
    tokensInCacheWrite: usage.tokensInCacheWrite,
    tokensOutReasoning: usage.tokensOutReasoning,
    usageState: figures.state,
    cost: figures.cost,
    isCostEstimated: figures.isCostEstimated,
    isCustomCost: figures.isCustomCost,
    metadata: start.options.metadata ?? null,
    eventId: start.options.eventId ?? null,
    userAgent: start.request.headers["user-agent"] ?? "",
    tokenId: start.tokenId,
    requestBytes: request.kind === "streamed" ? (request.length ?? sentBytes) : sentBytes,
    responseBytes: result.responseBytes,
    requestBody: isKept && sent !== null ? cut(sent, payloadBytes) : null,
    responseBody,
    requestBodyComplete: request.kind !== "streamed" && sentBytes <= payloadBytes,
    responseBodyComplete: result.isComplete && responseBody?.length === result.responseBytes,
  };
}

function cut(bytes: Buffer, length: number): Buffer {
  return bytes.length <= length ? bytes : bytes.subarray(0, length);
}
