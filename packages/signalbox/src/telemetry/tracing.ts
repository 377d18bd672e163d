/**
 * OpenTelemetry of this service: one exporter for the receivers of the whole service (`OTEL_*`) and of single gateways, and the decision which traces
 * are recorded. Loaded when something is configured to receive telemetry.
 */
import type { Registry } from "prom-client";
import {
  type Attributes,
  Histograms,
  OtlpExporter,
  type OtlpReceiver,
  randomSpanId,
  randomTraceId,
  type Span,
} from "../engines/otlp-export/index.ts";
import { VERSION } from "../version.ts";
import { registerMetric } from "./instruments.ts";
import type { Logger } from "./logger.ts";
import type { OtelSettings } from "./otel-settings.ts";
import { continueTrace } from "./trace-context.ts";

export interface TracingParts {
  /** Null when only gateways have receivers. */
  readonly settings: OtelSettings | null;
  readonly logger: Logger;
  readonly registry: Registry;
}

/** Where a span belongs. */
export interface SpanPlace {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly isRecorded: boolean;
}

const NO_RECEIVERS: readonly OtlpReceiver[] = [];
const CLOSE_MS = 3000;
/** The same message at most this often. */
const WARN_MS = 60_000;
const SIXTEEN_DIGITS = 2 ** 64;

export class Tracing {
  /** Receivers of spans of the whole service. */
  readonly receivers: readonly OtlpReceiver[];
  readonly capturesContent: boolean;
  /** Null when no metrics are sent. */
  readonly histograms: Histograms | null;
  readonly #settings: OtelSettings | null;
  readonly #exporter: OtlpExporter;
  #metricTimer: NodeJS.Timeout | undefined;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor({ settings, logger, registry }: TracingParts) {
    this.#settings = settings;
    this.capturesContent = settings?.capturesContent ?? false;
    const traces = settings?.traces ?? null;
    this.receivers = traces === null ? NO_RECEIVERS : [{ ...traces, mayBePrivate: true }];
    const resource: Attributes = [
      "service.name",
      settings?.serviceName ?? "signalbox",
      "service.version",
      VERSION,
      "telemetry.sdk.language",
      "nodejs",
      "telemetry.sdk.name",
      "signalbox",
      "telemetry.sdk.version",
      VERSION,
      ...Object.entries(settings?.resource ?? {}).flat(),
    ];
    this.#exporter = new OtlpExporter({
      resource,
      scope: { name: "signalbox", version: VERSION },
      maxQueuedSpans: settings?.maxQueuedSpans ?? 2048,
      maxBatchSpans: settings?.maxBatchSpans ?? 512,
      delayMs: settings?.delayMs ?? 5000,
      onFailure: ({ url }, reason) => {
        if (performance.now() - this.#warnedAt < WARN_MS) return;
        this.#warnedAt = performance.now();
        logger.warn({ receiver: new URL(url).host, reason }, "telemetry could not be sent and was dropped");
      },
    });
    const metrics = settings?.metrics ?? null;
    this.histograms = metrics === null ? null : new Histograms(Date.now());
    if (settings !== null && metrics !== null) {
      const receiver = { ...metrics, mayBePrivate: true };
      this.#metricTimer = setInterval(() => this.#sendMetrics(receiver), settings.metricIntervalMs);
      this.#metricTimer.unref();
    }
    registerMetric(
      registry,
      "counter",
      {
        name: "signalbox_otel_spans_total",
        help: "Spans that were sent to OpenTelemetry receivers, or dropped.",
        labels: ["outcome"],
      },
      () => {
        const { sent, dropped } = this.#exporter.counts;
        return [
          { value: sent, labels: { outcome: "sent" } },
          { value: dropped, labels: { outcome: "dropped" } },
        ];
      },
    );
  }

  /** The place of a new span below the caller's, or at the root of a new trace. */
  place(traceparent: string | undefined): SpanPlace {
    if (traceparent === undefined) {
      const traceId = randomTraceId();
      return { traceId, spanId: randomSpanId(), parentSpanId: null, isRecorded: this.#isSampled(traceId) };
    }
    const { traceId, spanId, parentSpanId, isSampled } = continueTrace(traceparent);
    const isParentBased = this.#settings?.sampler.isParentBased ?? true;
    const isRecorded = parentSpanId !== null && isParentBased ? isSampled : this.#isSampled(traceId);
    return { traceId, spanId, parentSpanId, isRecorded };
  }

  /** `toSpans` is called at once, if there is room for what it returns. */
  add(receivers: readonly OtlpReceiver[], toSpans: () => readonly Span[]): void {
    this.#exporter.add(receivers, toSpans);
  }

  async close(): Promise<void> {
    clearInterval(this.#metricTimer);
    const metrics = this.#settings?.metrics ?? null;
    if (metrics !== null) this.#sendMetrics({ ...metrics, mayBePrivate: true });
    await this.#exporter.close(CLOSE_MS);
  }

  #sendMetrics(receiver: OtlpReceiver): void {
    const { histograms } = this;
    if (histograms === null || histograms.isEmpty) return;
    this.#exporter.sendMetrics(receiver, histograms.text(Date.now()));
  }

  /** By the last digits of the id, as the samplers of other languages do, so that all services record the same traces. */
  #isSampled(traceId: string): boolean {
    const ratio = this.#settings?.sampler.ratio ?? 1;
    return ratio >= 1 || (ratio > 0 && Number.parseInt(traceId.slice(16), 16) / SIXTEEN_DIGITS < ratio);
  }
}

/** Milliseconds since the epoch of a time of `performance.now()`. */
export function toEpochMs(at: number): number {
  return performance.timeOrigin + at;
}
