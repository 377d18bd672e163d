/**
 * W3C Trace Context. A valid `traceparent` is continued; a missing or malformed one starts a new trace, as the recommendation requires. Requests
 * to providers name the span of this server as the parent.
 */
import { randomBytes } from "node:crypto";

export interface TraceContext {
  /** 32 hexadecimal digits, the same for all spans of the trace. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly isSampled: boolean;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZERO_TRACE = "0".repeat(32);
const ZERO_SPAN = "0".repeat(16);

export function continueTrace(traceparent: string | undefined): TraceContext {
  const spanId = randomBytes(8).toString("hex");
  const match = traceparent === undefined ? null : TRACEPARENT.exec(traceparent);
  const [, version = "", traceId = "", parentSpanId = "", flags = "", rest] = match ?? [];
  const isUsable =
    match !== null &&
    version !== "ff" &&
    traceId !== ZERO_TRACE &&
    parentSpanId !== ZERO_SPAN &&
    (version !== "00" || rest === undefined);
  if (!isUsable)
    return { traceId: randomBytes(16).toString("hex"), spanId, parentSpanId: null, isSampled: false };
  return { traceId, spanId, parentSpanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function toTraceparent(context: TraceContext): string {
  return `00-${context.traceId}-${context.spanId}-${context.isSampled ? "01" : "00"}`;
}
