/** The row of a call in the call log. */
import type { CallRecord } from "../../engines/call-log/index.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import { attemptsOf } from "./call-attempts.ts";
import type { CallOutcome, CallParts, CallStart, LogDetail, PlannedCall } from "./call-start.ts";
import { clientBodyOf, storedBodiesOf } from "./stored-bodies.ts";

export function logDetailOf({ options, gateway }: Pick<PlannedCall, "options" | "gateway">): LogDetail {
  if (!(options.collectLog ?? gateway.settings.collect_logs)) return "none";
  return options.collectLogPayload === false ? "row" : "bodies";
}

/** Records the call, unless logging is off or the gateway was deleted: a later gateway of that name would show the row. */
export function recordCall(parts: CallParts, start: CallStart, outcome: CallOutcome): void {
  const { accountId, id } = start.gateway;
  if (start.logDetail === "none" || parts.gateways.find(accountId, id) === undefined) return;
  parts.callLog.record(toCallRecord(start, outcome, parts.payloadBytes));
}

function toCallRecord(start: CallStart, outcome: CallOutcome, payloadBytes: number): CallRecord {
  const { step, spend } = outcome;
  const { usage } = spend;
  const kept = start.logDetail === "bodies" ? storedBodiesOf(start, outcome) : null;
  const request = clientBodyOf(step);
  return {
    id: start.id,
    accountId: start.gateway.accountId,
    gatewayId: start.gateway.id,
    createdAt: start.createdAt,
    provider: step.provider.slug,
    model: spend.model,
    path: step.path,
    method: step.upstream.method,
    requestType: step.requestType,
    requestContentType: start.request.headers["content-type"] ?? "",
    responseContentType: outcome.head?.contentType ?? "",
    statusCode: outcome.status,
    success: outcome.isComplete && outcome.isAnswer && outcome.status < 400,
    durationMs: performance.now() - start.startedAt,
    firstByteMs: outcome.firstByteMs,
    cached: outcome.isCached,
    step: outcome.place,
    tokensIn: usage.tokensIn,
    tokensOut: usage.tokensOut,
    tokensInCached: usage.tokensInCached,
    tokensInCacheWrite: usage.tokensInCacheWrite,
    tokensOutReasoning: usage.tokensOutReasoning,
    usageState: spend.state,
    cost: spend.cost,
    isCostEstimated: spend.isCostEstimated,
    isCustomCost: spend.isCustomCost,
    metadata: start.options.metadata ?? null,
    eventId: start.options.eventId ?? null,
    userAgent: start.request.headers["user-agent"] ?? "",
    tokenId: start.context.chargedTo === undefined ? start.caller.tokenId : start.context.chargedTo.tokenId,
    clientDialect: step.translation?.clientDialect ?? null,
    providerDialect: step.translation?.providerDialect ?? null,
    dropped:
      step.translation === null || step.translation.dropped.length === 0
        ? null
        : step.translation.dropped.join(","),
    guardrailAction: start.guard?.action ?? null,
    dlpAction: start.guard?.findings.dlpAction ?? null,
    guardrails: start.guard?.findings.toJson() ?? null,
    attempts: attemptsOf(start, outcome),
    requestBytes: lengthOf(request),
    responseBytes: outcome.responseBytes,
    requestBody: cut(kept?.request, payloadBytes),
    responseBody: cut(kept?.response, payloadBytes),
    requestBodyComplete:
      request.kind !== "streamed" && (kept?.request?.length ?? lengthOf(request)) <= payloadBytes,
    responseBodyComplete: kept?.isResponseWhole === true && (kept.response?.length ?? 0) <= payloadBytes,
  };
}

function lengthOf(body: RequestBody): number {
  if (body.kind === "none") return 0;
  return body.kind === "whole" ? body.bytes.length : (body.length ?? body.start.length);
}

function cut(bytes: Buffer | null | undefined, length: number): Buffer | null {
  return bytes == null || bytes.length <= length ? (bytes ?? null) : bytes.subarray(0, length);
}
