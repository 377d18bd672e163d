/**
 * The standard variables of OpenTelemetry (`OTEL_*`), as far as they apply here. Telemetry of the whole service is on when an endpoint is set: a
 * service that sends to `localhost` unasked would surprise its operator.
 */
import { ConfigError } from "../core/config-error.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface OtelEndpoint {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly format: "json" | "protobuf";
  readonly isCompressed: boolean;
  readonly timeoutMs: number;
}

export interface OtelSettings {
  /** Null when traces are not sent. */
  readonly traces: OtelEndpoint | null;
  readonly metrics: OtelEndpoint | null;
  readonly serviceName: string;
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: Sampler;
  readonly maxQueuedSpans: number;
  readonly maxBatchSpans: number;
  readonly delayMs: number;
  readonly metricIntervalMs: number;
  /** Prompts and answers are sent as well. */
  readonly capturesContent: boolean;
}

export interface Sampler {
  /** The decision of the caller's trace counts. */
  readonly isParentBased: boolean;
  /** The share of new traces that are recorded, from 0 to 1. */
  readonly ratio: number;
}

/** Null when nothing is sent for the whole service. Throws `ConfigError` for a value that cannot be used. */
export function readOtelSettings(environment: Environment): OtelSettings | null {
  if (environment["OTEL_SDK_DISABLED"]?.toLowerCase() === "true") return null;
  const traces = endpointOf(environment, "TRACES", "v1/traces");
  const metrics = endpointOf(environment, "METRICS", "v1/metrics");
  if (traces === null && metrics === null) return null;
  const resource = parsePairs("OTEL_RESOURCE_ATTRIBUTES", environment["OTEL_RESOURCE_ATTRIBUTES"]);
  const { "service.name": named, ...others } = resource;
  return {
    traces,
    metrics,
    serviceName: textOf(environment, "OTEL_SERVICE_NAME") ?? named ?? "signalbox",
    resource: others,
    sampler: parseSampler(environment),
    maxQueuedSpans: integerOf(environment, "OTEL_BSP_MAX_QUEUE_SIZE", 2048),
    maxBatchSpans: integerOf(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
    delayMs: integerOf(environment, "OTEL_BSP_SCHEDULE_DELAY", 5000),
    metricIntervalMs: integerOf(environment, "OTEL_METRIC_EXPORT_INTERVAL", 60_000),
    capturesContent: isTrue(environment["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"]),
  };
}

function endpointOf(
  environment: Environment,
  signal: "TRACES" | "METRICS",
  path: string,
): OtelEndpoint | null {
  const own = (name: string) =>
    textOf(environment, `OTEL_EXPORTER_OTLP_${signal}_${name}`) ??
    textOf(environment, `OTEL_EXPORTER_OTLP_${name}`);
  const exporter = textOf(environment, `OTEL_${signal}_EXPORTER`) ?? "otlp";
  if (exporter === "none") return null;
  if (exporter !== "otlp") throw wrong(`OTEL_${signal}_EXPORTER`, '"otlp" or "none"', exporter);
  const exact = textOf(environment, `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`);
  const base = textOf(environment, "OTEL_EXPORTER_OTLP_ENDPOINT");
  // The endpoint of one signal is used as it is; the common one is the base of both.
  const url = exact ?? (base === undefined ? undefined : `${base.replace(/\/+$/, "")}/${path}`);
  if (url === undefined) return null;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw wrong("OTEL_EXPORTER_OTLP_ENDPOINT", "an http:// or https:// address", url);
  const protocol = own("PROTOCOL") ?? "http/protobuf";
  if (protocol !== "http/protobuf" && protocol !== "http/json")
    throw wrong("OTEL_EXPORTER_OTLP_PROTOCOL", '"http/protobuf" or "http/json"', protocol);
  const compression = own("COMPRESSION") ?? "none";
  if (compression !== "none" && compression !== "gzip")
    throw wrong("OTEL_EXPORTER_OTLP_COMPRESSION", '"gzip" or "none"', compression);
  return {
    url,
    headers: parsePairs("OTEL_EXPORTER_OTLP_HEADERS", own("HEADERS")),
    format: protocol === "http/json" ? "json" : "protobuf",
    isCompressed: compression === "gzip",
    timeoutMs: toInteger("OTEL_EXPORTER_OTLP_TIMEOUT", own("TIMEOUT"), 10_000),
  };
}

/** `key=value,key=value`, with percent-encoded values. */
function parsePairs(name: string, text: string | undefined): Record<string, string> {
  const pairs = (text ?? "").split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0) throw wrong(name, "key=value, separated by commas", "another text");
      return [pair.slice(0, at).trim(), decode(name, pair.slice(at + 1).trim())];
    }),
  );
}

function decode(name: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong(name, "percent-encoded values", "another text");
  }
}

function parseSampler(environment: Environment): Sampler {
  const name = textOf(environment, "OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const argument = textOf(environment, "OTEL_TRACES_SAMPLER_ARG") ?? "1";
  const isParentBased = name.startsWith("parentbased_");
  const kind = isParentBased ? name.slice("parentbased_".length) : name;
  if (kind === "always_on") return { isParentBased, ratio: 1 };
  if (kind === "always_off") return { isParentBased, ratio: 0 };
  const ratio = Number(argument);
  if (kind !== "traceidratio")
    throw wrong(
      "OTEL_TRACES_SAMPLER",
      "always_on, always_off or traceidratio, also after parentbased_",
      name,
    );
  if (!(ratio >= 0 && ratio <= 1)) throw wrong("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", argument);
  return { isParentBased, ratio };
}

function textOf(environment: Environment, name: string): string | undefined {
  const text = environment[name]?.trim();
  return text === "" ? undefined : text;
}

function integerOf(environment: Environment, name: string, fallback: number): number {
  return toInteger(name, textOf(environment, name), fallback);
}

function toInteger(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw wrong(name, "a positive integer", text);
  return Number(text);
}

function isTrue(text: string | undefined): boolean {
  return text?.trim().toLowerCase() === "true" || text?.trim().toUpperCase() === "SPAN_ONLY";
}

function wrong(name: string, expected: string, found: string): ConfigError {
  return new ConfigError(`${name}: expected ${expected}, found ${found}`);
}
