/** Writes the log row of a finished call. */
import type { CallRecord } from "../../engines/call-log/index.ts";
import type { ResponseHead, Usage } from "../../engines/relay/index.ts";
import type { Step } from "../plan/plan-step.ts";
import type { CallParts, CallStart } from "./call-start.ts";

export interface CallResult {
  readonly step: Step;
  readonly stepIndex: number;
  readonly model: string;
  readonly status: number;
  readonly isComplete: boolean;
  readonly isCached: boolean;
  readonly head: ResponseHead | null;
  readonly firstByteMs: number | null;
  readonly usage: Usage;
  readonly cost: number | null;
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
  const { step } = result;
  const isKept = start.logDetail === "bodies";
  // Of a translated call the row has both bodies as the client knows them.
  const request = step.door?.request ?? step.upstream.body;
  const sent = request.kind === "whole" ? request.bytes : request.kind === "streamed" ? request.start : null;
  const sentBytes = sent?.length ?? 0;
  const responseBody = isKept ? cut(result.body, payloadBytes) : null;
  return {
    id: start.id,
    accountId: start.gateway.accountId,
    gatewayId: start.gateway.id,
    createdAt: start.createdAt,
    provider: step.provider.slug,
    model: result.model,
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
    tokensIn: result.usage.tokensIn,
    tokensOut: result.usage.tokensOut,
    tokensInCached: result.usage.tokensInCached,
    tokensInCacheWrite: result.usage.tokensInCacheWrite,
    tokensOutReasoning: result.usage.tokensOutReasoning,
    cost: result.cost,
    isCustomCost: !result.isCached && start.options.customCost !== undefined,
    metadata: start.options.metadata ?? null,
    eventId: start.options.eventId ?? null,
    userAgent: start.request.headers["user-agent"] ?? "",
    tokenId: start.tokenId,
    clientDialect: step.door?.clientDialect ?? null,
    providerDialect: step.door?.providerDialect ?? null,
    dropped: step.door === null || step.door.dropped.length === 0 ? null : step.door.dropped.join(","),
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
