/** Sends spans and metrics over OTLP/HTTP; see README.md. */
export { Histograms, type Series } from "./histograms.ts";
export { OtlpExporter, type OtlpReceiver } from "./otlp-exporter.ts";
export { type Attributes, type AttributeValue, type Span, SpanKind } from "./span.ts";
export { randomSpanId, randomTraceId } from "./random-ids.ts";
