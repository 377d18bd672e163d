/**
 * Ended calls as spans and metrics of OpenTelemetry, with the semantic conventions for generative AI: a span of the call, and below it one for each
 * attempt. The spans are built and written when the call ends, because the call's objects must not stay in memory until they are sent. Loaded when a
 * receiver is configured.
 */
import {
  type Attributes,
  type AttributeValue,
  type Histograms,
  type OtlpReceiver,
  type Series,
  type Span,
  randomSpanId,
  SpanKind,
} from "../../engines/otlp-export/index.ts";
import type { UpstreamRequest } from "../../engines/relay/index.ts";
import { type SpanPlace, toEpochMs, type Tracing } from "../../telemetry/tracing.ts";
import type { AttemptReport } from "../reliability/attempt-report.ts";
import type { CallOutcome, CallStart, CallTracing } from "../call/call-start.ts";
import { storedBodiesOf } from "../call/stored-bodies.ts";
import type { Findings } from "../guardrails/findings.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { OtelReceivers } from "../settings/otel-receivers.ts";
import type { SessionEnd } from "../realtime/session.ts";
import type { SessionStart } from "../realtime/session-record.ts";
import { readAnswerFacts } from "./answer-facts.ts";
import { contentAttributes } from "./call-content.ts";
import { OPERATION_DURATION, operationOf, providerNameOf, TOKEN_USAGE } from "./genai-names.ts";

export interface CallTracingParts {
  readonly tracing: Tracing;
  readonly receivers: OtelReceivers;
}

interface Target {
  readonly receivers: readonly OtlpReceiver[];
  readonly capturesContent: boolean;
}

export class GatewayTracing implements CallTracing {
  readonly #parts: CallTracingParts;
  /** A changed gateway is another object. */
  readonly #targets = new WeakMap<Gateway, Target>();
  /** Of the call before. */
  #last: { operation: string; provider: string; model: string; host: string; series: CallSeries } | null =
    null;

  constructor(parts: CallTracingParts) {
    this.#parts = parts;
  }

  ended(start: CallStart, outcome: CallOutcome): void {
    const { receivers, capturesContent } = this.#targetOf(start.gateway);
    const endedAt = performance.now();
    const { step, spend } = outcome;
    const operation = operationOf(step.requestType);
    const provider = providerNameOf(step.provider.slug);
    const { origin } = step.upstream;
    const error = errorTypeOf(outcome);
    this.#record(operation, provider, spend, origin.hostname, (endedAt - start.startedAt) / 1000, error);
    if (receivers.length === 0) return;
    const place = placeOf(this.#parts.tracing, start, step.upstream);
    if (!place.isRecorded) return;
    const body = outcome.isBodyWhole ? outcome.body : null;
    const { id, finishReason } = readAnswerFacts(
      body,
      step.translation?.clientDialect === "chat" ? "chat" : step.requestType,
    );
    const { usage, cost, named, model } = spend;
    const attributes: (string | number | boolean | readonly string[])[] = [
      "gen_ai.operation.name",
      operation,
      "gen_ai.provider.name",
      provider,
      "server.address",
      origin.hostname,
      "server.port",
      origin.port,
      "http.response.status_code",
      outcome.status,
      "signalbox.gateway.id",
      start.gateway.id,
      "signalbox.account.id",
      start.gateway.accountId,
      "signalbox.call.id",
      start.id,
    ];
    if (model !== "") attributes.push("gen_ai.request.model", model);
    if (named !== null) attributes.push("gen_ai.response.model", named);
    if (id !== null) attributes.push("gen_ai.response.id", id);
    if (finishReason !== null) attributes.push("gen_ai.response.finish_reasons", [finishReason]);
    if (outcome.firstByteMs !== null && outcome.head?.contentType.startsWith("text/event-stream") === true)
      attributes.push("gen_ai.response.time_to_first_chunk", outcome.firstByteMs / 1000);
    addUsage(attributes, spend);
    if (usage.tokensInCached > 0)
      attributes.push("gen_ai.usage.cache_read.input_tokens", usage.tokensInCached);
    if (cost !== null) attributes.push("gen_ai.usage.cost", cost);
    if (start.options.sessionId !== undefined)
      attributes.push("gen_ai.conversation.id", start.options.sessionId);
    if (start.caller.tokenId !== null) attributes.push("signalbox.token.id", start.caller.tokenId);
    if (error !== null) attributes.push("error.type", error);
    if (capturesContent) attributes.push(...contentOf(start, outcome));
    if (start.guard !== undefined) attributes.push(...decisionsOf(start.guard.findings));
    const { metadata } = start.options;
    const span: Span = {
      ...place,
      name: model === "" ? operation : `${operation} ${model}`,
      kind: SpanKind.client,
      startMs: toEpochMs(start.startedAt),
      endMs: toEpochMs(endedAt),
      attributes,
      error,
    };
    const last = {
      startedAt: outcome.attemptStartedAt,
      durationMs: endedAt - (outcome.attemptStartedAt ?? endedAt),
      status: outcome.head?.status ?? null,
      provider,
      host: origin.hostname,
      error,
    };
    const others = outcome.otherAttempts?.map(toAttempt) ?? [];
    this.#parts.tracing.add(receivers, () => [
      { ...span, attributes: metadata === undefined ? attributes : [...attributes, ...metadataOf(metadata)] },
      ...[...others, last].flatMap((attempt, i) => toAttemptSpan(place, attempt, i + 1)),
    ]);
  }

  sessionEnded(
    start: SessionStart,
    { spend, error, code }: SessionEnd,
    traceparent: string | undefined,
    findings: Findings,
  ): void {
    const { receivers } = this.#targetOf(start.gateway);
    const { model, cost } = spend;
    const provider = providerNameOf(start.provider);
    const endedAt = performance.now();
    const failure = error === null ? null : error.id;
    const operation = operationOf("realtime");
    this.#record(operation, provider, spend, "", (endedAt - start.startedAt) / 1000, failure);
    if (receivers.length === 0) return;
    const place = this.#parts.tracing.place(traceparent);
    if (!place.isRecorded) return;
    const attributes: AttributeValue[] = [
      ...decisionsOf(findings),
      "gen_ai.operation.name",
      operation,
      "gen_ai.provider.name",
      provider,
      "gen_ai.request.model",
      model,
      "signalbox.gateway.id",
      start.gateway.id,
      "signalbox.call.id",
      start.id,
      "signalbox.websocket.close_code",
      code,
    ];
    addUsage(attributes, spend);
    if (cost !== null) attributes.push("gen_ai.usage.cost", cost);
    if (failure !== null) attributes.push("error.type", failure);
    const span: Span = {
      ...place,
      name: `${operation} ${model}`,
      kind: SpanKind.client,
      startMs: toEpochMs(start.startedAt),
      endMs: toEpochMs(endedAt),
      attributes,
      error: failure,
    };
    this.#parts.tracing.add(receivers, () => [span]);
  }

  #targetOf(gateway: Gateway): Target {
    let target = this.#targets.get(gateway);
    if (target === undefined) {
      const { tracing, receivers } = this.#parts;
      const own = gateway.settings.otel === null ? [] : receivers.open(gateway);
      target = {
        receivers: own.length === 0 ? tracing.receivers : [...tracing.receivers, ...own],
        capturesContent: tracing.capturesContent || gateway.settings.otel_content,
      };
      this.#targets.set(gateway, target);
    }
    return target;
  }

  #record(
    operation: string,
    provider: string,
    { model, usage, state }: CallSpend,
    host: string,
    seconds: number,
    error: string | null,
  ): void {
    const { histograms } = this.#parts.tracing;
    if (histograms === null) return;
    const series = this.#seriesOf(histograms, operation, provider, model, host);
    const duration = error === null ? series.duration : series.failed(error);
    histograms.record(duration, seconds);
    if (state === "none" || state === "unknown") return;
    histograms.record(series.input, usage.tokensIn);
    histograms.record(series.output, usage.tokensOut);
  }

  /** Most calls are of few kinds, so the look-up is by parts that are the same objects, without a text that is joined for every call. */
  #seriesOf(
    histograms: Histograms,
    operation: string,
    provider: string,
    model: string,
    host: string,
  ): CallSeries {
    const last = this.#last;
    if (
      last?.model === model &&
      last.provider === provider &&
      last.operation === operation &&
      last.host === host
    )
      return last.series;
    const key = `${operation}\n${provider}\n${model}\n${host}\n`;
    const common: Attributes = [
      "gen_ai.operation.name",
      operation,
      "gen_ai.provider.name",
      provider,
      "gen_ai.request.model",
      model,
      ...(host === "" ? [] : ["server.address", host]),
    ];
    const tokens = (type: string) =>
      histograms.series(TOKEN_USAGE, key + type, () => [...common, "gen_ai.token.type", type]);
    const series: CallSeries = {
      duration: histograms.series(OPERATION_DURATION, key, () => common),
      failed: (error) =>
        histograms.series(OPERATION_DURATION, key + error, () => [...common, "error.type", error]),
      input: tokens("input"),
      output: tokens("output"),
    };
    this.#last = { operation, provider, model, host, series };
    return series;
  }
}

/** Prompt and answer; where rules keep a text out of the log, a receiver does not get it either. */
function contentOf(start: CallStart, outcome: CallOutcome): AttributeValue[] {
  const { translation, upstream } = outcome.step;
  const { request, response } = storedBodiesOf(start, outcome);
  const sent = translation?.request ?? upstream.body;
  const prompt = start.guard?.masksLog === true ? request : sent.kind === "whole" ? sent.bytes : null;
  return contentAttributes(prompt, outcome.isBodyWhole ? response : null);
}

/** What the guardrails decided: `rule:place:action` for each rule and place, never a text. */
function decisionsOf({ action, all }: Findings): AttributeValue[] {
  if (action === null) return [];
  const decisions = new Set(all.map((one) => `${one.owner}/${one.rule}:${one.place}:${one.action}`));
  return ["signalbox.guardrail.action", action, "signalbox.guardrail.decisions", [...decisions]];
}

interface CallSeries {
  readonly duration: Series;
  readonly failed: (error: string) => Series;
  readonly input: Series;
  readonly output: Series;
}

function addUsage(
  attributes: (string | number | boolean | readonly string[])[],
  { usage, state }: CallSpend,
): void {
  if (state === "none" || state === "unknown") return;
  attributes.push("gen_ai.usage.input_tokens", usage.tokensIn, "gen_ai.usage.output_tokens", usage.tokensOut);
  if (usage.tokensInCacheWrite > 0)
    attributes.push("gen_ai.usage.cache_creation.input_tokens", usage.tokensInCacheWrite);
  if (usage.tokensOutReasoning > 0)
    attributes.push("gen_ai.usage.reasoning.output_tokens", usage.tokensOutReasoning);
  if (state === "estimated") attributes.push("signalbox.usage.estimated", true);
}

/** The status of the answer; a word of ours when there was none. */
function errorTypeOf({ status, isComplete, isAnswer, isAbandoned, head }: CallOutcome): string | null {
  if (isAbandoned) return "client_disconnected";
  if (status >= 400) return head === null ? (status === 504 ? "timeout" : "unreachable") : String(status);
  return !isComplete ? "incomplete" : isAnswer ? null : "no_answer";
}

/** The span that the provider was told, if the caller sent a trace; else a new one. */
function placeOf(tracing: Tracing, { request, options }: CallStart, { headers }: UpstreamRequest): SpanPlace {
  const caller = request.headers["traceparent"];
  const place = tracing.place(typeof caller === "string" ? caller : undefined);
  const { otelTraceId, otelParentSpanId } = options;
  if (otelTraceId !== undefined || otelParentSpanId !== undefined) {
    return {
      ...place,
      traceId: otelTraceId ?? place.traceId,
      parentSpanId: otelParentSpanId ?? place.parentSpanId,
    };
  }
  if (place.parentSpanId === null) return place;
  const sent = headers[headers.indexOf("traceparent") + 1]?.split("-")[2];
  return sent?.length === 16 ? { ...place, spanId: sent } : place;
}

interface AttemptFacts {
  readonly startedAt: number | null;
  readonly durationMs: number;
  readonly status: number | null;
  readonly provider: string;
  readonly host: string;
  readonly error: string | null;
}

function toAttempt({ step, startedAt, durationMs, head, failure, outcome }: AttemptReport): AttemptFacts {
  return {
    startedAt,
    durationMs,
    status: head?.status ?? null,
    provider: providerNameOf(step.provider.slug),
    host: step.upstream.origin.hostname,
    error: failure === null ? outcome : failure.status === null ? failure.kind : String(failure.status),
  };
}

function toAttemptSpan(place: SpanPlace, attempt: AttemptFacts, number: number): Span[] {
  const { startedAt, durationMs, status, provider, host, error } = attempt;
  if (startedAt === null) return [];
  const startMs = toEpochMs(startedAt);
  return [
    {
      traceId: place.traceId,
      spanId: randomSpanId(),
      parentSpanId: place.spanId,
      name: `attempt ${provider}`,
      kind: SpanKind.client,
      startMs,
      endMs: startMs + durationMs,
      attributes: [
        "gen_ai.provider.name",
        provider,
        "server.address",
        host,
        "signalbox.attempt",
        number,
        ...(number > 1 ? ["http.request.resend_count", number - 1] : []),
        ...(status === null ? [] : ["http.response.status_code", status]),
        ...(error === null ? [] : ["error.type", error]),
      ],
      error,
    },
  ];
}

function metadataOf(text: string): Attributes {
  const metadata = JSON.parse(text) as Readonly<Record<string, string | number | boolean | null>>;
  return Object.entries(metadata).flatMap(([key, value]) =>
    value === null ? [] : [`signalbox.metadata.${key}`, value],
  );
}
