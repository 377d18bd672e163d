/** The row of usage that no single call of the gateway has: of work that was measured elsewhere, and of jobs that have ended. */
import type { CallRecord } from "../../engines/call-log/index.ts";
import type { Usage } from "../../engines/relay/index.ts";
import type { Gateway } from "../settings/gateway.ts";

export interface BookedWork
  extends
    Pick<Usage, "tokensIn" | "tokensOut">,
    Partial<Pick<Usage, "tokensInCached" | "tokensInCacheWrite" | "tokensOutReasoning">>,
    Pick<
      CallRecord,
      "provider" | "model" | "cost" | "isCustomCost" | "metadata" | "eventId" | "tokenId" | "durationMs"
    > {
  readonly path?: string;
  readonly isCostEstimated?: boolean;
}

export function toBookedRecord(
  gateway: Gateway,
  id: string,
  createdAt: number,
  work: BookedWork,
): CallRecord {
  return {
    id,
    accountId: gateway.accountId,
    gatewayId: gateway.id,
    createdAt,
    provider: work.provider,
    model: work.model,
    path: work.path ?? "",
    method: "",
    requestType: "",
    requestContentType: "",
    responseContentType: "",
    statusCode: 200,
    success: true,
    durationMs: work.durationMs,
    firstByteMs: null,
    cached: false,
    step: 0,
    tokensIn: work.tokensIn,
    tokensOut: work.tokensOut,
    tokensInCached: work.tokensInCached ?? 0,
    tokensInCacheWrite: work.tokensInCacheWrite ?? 0,
    tokensOutReasoning: work.tokensOutReasoning ?? 0,
    usageState: work.isCostEstimated === true ? "estimated" : "reported",
    cost: work.cost,
    isCostEstimated: work.isCostEstimated === true,
    isCustomCost: work.isCustomCost,
    metadata: work.metadata,
    eventId: work.eventId,
    userAgent: "",
    tokenId: work.tokenId,
    clientDialect: null,
    providerDialect: null,
    dropped: null,
    guardrailAction: null,
    dlpAction: null,
    guardrails: null,
    attempts: null,
    requestBytes: 0,
    responseBytes: 0,
    requestBody: null,
    responseBody: null,
    requestBodyComplete: true,
    responseBodyComplete: true,
  };
}
