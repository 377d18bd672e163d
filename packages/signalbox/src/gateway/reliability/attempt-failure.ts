/** Why an attempt gave no answer that the client should get, and what a failure allows: another try of the target, or the next step. */
import { SignalboxError } from "@signalbox/protocol";
import type { ResponseHead, UpstreamFailure } from "../../engines/relay/index.ts";
import type { FailureReason, FallbackCause } from "../step/attempt-policy.ts";
import { BlockedResponse } from "../guardrails/blocked-response.ts";
import { readRetryAfter } from "./retry-wait.ts";

/**
 * `status`: an error status; `in_band`: a success status with an error, or with nothing, in the body; `timeout`: no head, no first token or
 * no further byte in time; `unreachable`: no connection; `broken`: the connection ended in the middle; `refused`: the gateway itself did
 * not send the step, because a budget is spent or no key is left, or has no room for the response; `blocked`: a guardrail refused the response.
 */
export type FailureKind = "status" | "in_band" | "timeout" | "unreachable" | "broken" | "refused" | "blocked";

export interface AttemptFailure {
  readonly kind: FailureKind;
  /** The status of the response; null when there was none. */
  readonly status: number | null;
  readonly reason: FailureReason | null;
  /** How long the provider asks to wait; null when it does not say. */
  readonly retryAfterMs: number | null;
  readonly cause: unknown;
}

export function statusFailure(head: ResponseHead, nowMs: number): AttemptFailure {
  const retryAfterMs = readRetryAfter(head.rawHeaders, nowMs);
  return { kind: "status", status: head.status, reason: null, retryAfterMs, cause: undefined };
}

export function transportFailure(failure: UpstreamFailure): AttemptFailure {
  if (failure instanceof BlockedResponse)
    return { kind: "blocked", status: null, reason: "content_filter", retryAfterMs: null, cause: failure };
  // The client gets the reason of this server.
  const cause = failure.kind === "refused" ? failure.cause : failure;
  return { kind: failure.kind, status: null, reason: null, retryAfterMs: null, cause };
}

export function timeoutFailure(message: string): AttemptFailure {
  return { kind: "timeout", status: null, reason: null, retryAfterMs: null, cause: new Error(message) };
}

/** `isCut`: what arrived is the beginning of an answer. */
export function inBandFailure(status: number, message: string, isCut = false): AttemptFailure {
  return {
    kind: isCut ? "broken" : "in_band",
    status,
    reason: null,
    retryAfterMs: null,
    cause: new Error(message),
  };
}

/** True when another try of the same target may change the result: the provider was busy, unreachable or failed. */
export function isTransient({ kind, status }: AttemptFailure): boolean {
  if (kind === "refused" || kind === "blocked") return false;
  return kind !== "status" || isTransientStatus(status ?? 0);
}

/** 400, 401, 403, 404 and 422 among others are not: the same request gets the same answer. */
function isTransientStatus(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** The statuses whose body may name a reason that decides about a fallback. */
export function mayHaveReason(status: number): boolean {
  return status === 400 || status === 403 || status === 413 || status === 422;
}

/** Whether the next step is tried. Without a list: after every failure except a rejection of the content, which other models share. */
export function allowsFallback(failure: AttemptFailure, causes: readonly FallbackCause[] | null): boolean {
  if (failure.kind === "refused") return true;
  if (causes === null) return failure.reason !== "content_filter";
  return causes.some((cause) => isCausedBy(failure, cause));
}

function isCausedBy({ kind, status, reason }: AttemptFailure, cause: FallbackCause): boolean {
  switch (cause) {
    case "timeout":
      return kind === "timeout";
    case "connection":
      return kind === "unreachable" || kind === "broken";
    case "in_band":
      return kind === "in_band";
    case "context_length":
    case "content_filter":
      return reason === cause;
    case "4xx":
      // A reason that stands for itself is not meant by the range.
      return kind === "status" && status !== null && status < 500 && reason === null;
    case "5xx":
      return kind === "status" && status !== null && status >= 500;
    default:
      return status === cause;
  }
}

/** The error for the client of a call whose last attempt got no response. */
export function toCallError(failure: AttemptFailure): SignalboxError {
  const { kind, cause } = failure;
  if (cause instanceof SignalboxError) return cause;
  if (cause instanceof BlockedResponse) return cause.error;
  if (kind === "timeout") return new SignalboxError("gateway_provider_timeout", { cause });
  const message =
    kind === "in_band"
      ? "Provider reported an error in its response"
      : kind === "broken"
        ? "Provider broke off before answering"
        : "Provider unreachable";
  return new SignalboxError("gateway_provider_unreachable", { message, cause });
}

const CONTEXT_LENGTH =
  /context_length_exceeded|model_context_window_exceeded|maximum context length|context window|prompt is too long|input is too long|exceeds the maximum number of tokens|too many (?:input )?tokens/i;
const CONTENT_FILTER =
  /content_policy_violation|content_filter|content[ _-]?management[ _-]?policy|ResponsibleAIPolicyViolation|"blockReason"|safety[ _]system|PROHIBITED_CONTENT/i;

/** Reads the reason from the body of an error. Providers agree on no field, so the known codes and phrases are searched. */
export function readReason(body: Buffer): FailureReason | null {
  const text = body.toString("utf8");
  if (CONTENT_FILTER.test(text)) return "content_filter";
  return CONTEXT_LENGTH.test(text) ? "context_length" : null;
}
