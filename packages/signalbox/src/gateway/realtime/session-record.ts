/** The row of a session in the call log: one, when the session has ended or was refused by the provider. */
import { type CallSink } from "../../engines/call-log/index.ts";
import { NO_USAGE } from "../../engines/relay/index.ts";
import type { LogDetail } from "../call/call-start.ts";
import type { SessionGuard } from "../guardrails/session-guard.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { CallOptions } from "../step/call-options.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import type { SessionDialect } from "./message.ts";
import type { SessionTranscript } from "./session-transcript.ts";

export interface SessionStart {
  readonly id: string;
  readonly createdAt: number;
  /** `performance.now()` when the headers had arrived. */
  readonly startedAt: number;
  readonly gateway: Gateway;
  readonly tokenId: string | null;
  readonly options: CallOptions;
  readonly provider: string;
  readonly path: string;
  readonly kind: SessionDialect["kind"];
  readonly userAgent: string;
  /** Of the caller. */
  readonly traceparent: string | undefined;
  readonly logDetail: LogDetail;
}

export interface SessionResult {
  readonly status: number;
  readonly isComplete: boolean;
  /** Until the provider answered the handshake; null when it did not. */
  readonly firstByteMs: number | null;
  /** Null for a session that the provider refused. */
  readonly spend: CallSpend | null;
  readonly model: string;
  readonly transcript: SessionTranscript | null;
  /** What the provider said when it refused the session. */
  readonly responseBody: Buffer | null;
  /** What the guardrails found; null for a session that the provider refused. */
  readonly guard: SessionGuard | null;
}

export interface RecordParts {
  readonly callLog: CallSink;
  readonly gateways: Pick<Gateways, "find">;
}

const LINES = "application/x-ndjson";

export function recordSession(
  { callLog, gateways }: RecordParts,
  start: SessionStart,
  result: SessionResult,
): void {
  const { accountId, id: gatewayId } = start.gateway;
  const kept = result.transcript?.take() ?? null;
  // A later gateway of that name would show the row.
  if (start.logDetail === "none" || gateways.find(accountId, gatewayId) === undefined) return;
  const { spend, transcript, responseBody } = result;
  const usage = spend?.usage ?? NO_USAGE;
  const hasBodies = start.logDetail === "bodies";
  const bodies = hasBodies ? bodiesOf(result, kept) : NO_BODIES;
  callLog.record({
    id: start.id,
    accountId,
    gatewayId,
    createdAt: start.createdAt,
    provider: start.provider,
    model: result.model,
    path: start.path,
    method: "GET",
    requestType: start.kind === "other" ? "" : start.kind,
    requestContentType: LINES,
    responseContentType: LINES,
    statusCode: result.status,
    success: result.isComplete && result.status < 400,
    durationMs: performance.now() - start.startedAt,
    firstByteMs: result.firstByteMs,
    cached: false,
    step: 0,
    tokensIn: usage.tokensIn,
    tokensOut: usage.tokensOut,
    tokensInCached: usage.tokensInCached,
    tokensInCacheWrite: usage.tokensInCacheWrite,
    tokensOutReasoning: usage.tokensOutReasoning,
    usageState: spend?.state ?? "none",
    cost: spend === null ? 0 : spend.cost,
    isCostEstimated: spend?.isCostEstimated ?? false,
    isCustomCost: spend?.isCustomCost ?? false,
    metadata: start.options.metadata ?? null,
    eventId: start.options.eventId ?? null,
    userAgent: start.userAgent,
    tokenId: start.tokenId,
    clientDialect: null,
    providerDialect: null,
    dropped: null,
    guardrailAction: result.guard?.action ?? null,
    dlpAction: result.guard?.findings.dlpAction ?? null,
    guardrails: result.guard?.findings.toJson() ?? null,
    attempts: null,
    requestBytes: transcript?.sentBytes ?? 0,
    responseBytes: transcript?.receivedBytes ?? responseBody?.length ?? 0,
    requestBody: bodies.request,
    responseBody: bodies.response,
    requestBodyComplete: kept?.isWhole ?? true,
    responseBodyComplete: kept?.isWhole ?? true,
  });
}

interface Bodies {
  readonly request: Buffer | null;
  readonly response: Buffer | null;
}

const NO_BODIES: Bodies = { request: null, response: null };

/** With masks, where rules of the session keep texts out of the log. */
function bodiesOf(
  { guard, responseBody }: SessionResult,
  kept: ReturnType<SessionTranscript["take"]> | null,
): Bodies {
  if (kept === null) return { request: null, response: responseBody };
  const masked = guard?.storedBodies ?? null;
  if (masked === null) return kept;
  const whole = (bytes: Buffer) => (kept.isWhole ? { bytes, contentType: LINES } : null);
  return {
    request: masked.lines("prompt", whole(kept.request)),
    response: masked.lines("response", whole(kept.response)),
  };
}
