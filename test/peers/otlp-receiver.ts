/** A receiver of OTLP/HTTP on loopback: reads JSON and protobuf, by its own table of the published messages, and keeps what it received. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

export type Value = string | number | boolean | Value[];

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: bigint;
  readonly endTimeUnixNano: bigint;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly status: number;
  readonly resource: Readonly<Record<string, Value>>;
}

export interface ReceivedPoint {
  readonly metric: string;
  readonly unit: string;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly count: bigint;
  readonly sum: number;
  readonly bucketCounts: readonly bigint[];
  readonly explicitBounds: readonly number[];
}

export interface OtlpReceiver {
  readonly url: string;
  readonly spans: ReceivedSpan[];
  readonly points: ReceivedPoint[];
  readonly requests: IncomingMessage[];
  /** Status of the next responses. */
  status: number;
  close(): Promise<void>;
}

type Fields = Readonly<Record<string, unknown>>;

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    requests.push(request);
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (receiver.status === 200)
        receive(receiver, request.url ?? "", request.headers, Buffer.concat(chunks));
      response.writeHead(receiver.status, { "content-type": "application/json" });
      response.end("{}");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    points: [],
    requests,
    status: 200,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return receiver;
}

function receive(
  receiver: OtlpReceiver,
  url: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: Buffer,
): void {
  const bytes = headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
  const isMetrics = url.endsWith("/v1/metrics");
  const root = isMetrics ? "MetricsData" : "TracesData";
  const data =
    headers["content-type"] === "application/json"
      ? (JSON.parse(bytes.toString()) as Fields)
      : decode(root, bytes);
  for (const group of listOf(data[isMetrics ? "resourceMetrics" : "resourceSpans"])) {
    const resource = attributesOf((group["resource"] as Fields)["attributes"]);
    for (const scope of listOf(group[isMetrics ? "scopeMetrics" : "scopeSpans"])) {
      for (const span of listOf(scope["spans"])) receiver.spans.push(toSpan(span, resource));
      for (const metric of listOf(scope["metrics"])) {
        const points = listOf((metric["histogram"] as Fields)["dataPoints"]);
        for (const point of points) receiver.points.push(toPoint(metric, point));
      }
    }
  }
}

function toSpan(span: Fields, resource: ReceivedSpan["resource"]): ReceivedSpan {
  return {
    traceId: String(span["traceId"]),
    spanId: String(span["spanId"]),
    parentSpanId: typeof span["parentSpanId"] === "string" ? span["parentSpanId"] : "",
    name: String(span["name"]),
    kind: Number(span["kind"]),
    startTimeUnixNano: BigInt(span["startTimeUnixNano"] as string),
    endTimeUnixNano: BigInt(span["endTimeUnixNano"] as string),
    attributes: attributesOf(span["attributes"]),
    status: Number((span["status"] as Fields | undefined)?.["code"] ?? 0),
    resource,
  };
}

function toPoint(metric: Fields, point: Fields): ReceivedPoint {
  return {
    metric: String(metric["name"]),
    unit: String(metric["unit"]),
    attributes: attributesOf(point["attributes"]),
    count: BigInt(point["count"] as string),
    sum: Number(point["sum"]),
    bucketCounts: (point["bucketCounts"] as string[]).map(BigInt),
    explicitBounds: (point["explicitBounds"] as number[]).map(Number),
  };
}

function listOf(value: unknown): Fields[] {
  return (value ?? []) as Fields[];
}

function attributesOf(list: unknown): Record<string, Value> {
  return Object.fromEntries(listOf(list).map(({ key, value }) => [String(key), toValue(value as Fields)]));
}

function toValue(value: Fields): Value {
  if ("stringValue" in value) return String(value["stringValue"]);
  if ("intValue" in value) return Number(value["intValue"]);
  if ("doubleValue" in value) return Number(value["doubleValue"]);
  if ("boolValue" in value) return value["boolValue"] === true || value["boolValue"] === 1n;
  return listOf((value["arrayValue"] as Fields)["values"]).map(toValue);
}

/** opentelemetry-proto 1.x: number → name and type, `*` for repeated. */
const MESSAGES: Readonly<Record<string, Readonly<Record<number, readonly [string, string]>>>> = {
  TracesData: { 1: ["resourceSpans", "*ResourceSpans"] },
  ResourceSpans: {
    1: ["resource", "Resource"],
    2: ["scopeSpans", "*ScopeSpans"],
    3: ["schemaUrl", "string"],
  },
  ScopeSpans: { 1: ["scope", "Scope"], 2: ["spans", "*Span"], 3: ["schemaUrl", "string"] },
  MetricsData: { 1: ["resourceMetrics", "*ResourceMetrics"] },
  ResourceMetrics: {
    1: ["resource", "Resource"],
    2: ["scopeMetrics", "*ScopeMetrics"],
    3: ["schemaUrl", "string"],
  },
  ScopeMetrics: { 1: ["scope", "Scope"], 2: ["metrics", "*Metric"], 3: ["schemaUrl", "string"] },
  Resource: { 1: ["attributes", "*KeyValue"] },
  Scope: { 1: ["name", "string"], 2: ["version", "string"] },
  KeyValue: { 1: ["key", "string"], 2: ["value", "AnyValue"] },
  AnyValue: {
    1: ["stringValue", "string"],
    2: ["boolValue", "varint"],
    3: ["intValue", "varint"],
    4: ["doubleValue", "double"],
    5: ["arrayValue", "ArrayValue"],
  },
  ArrayValue: { 1: ["values", "*AnyValue"] },
  Span: {
    1: ["traceId", "hex"],
    2: ["spanId", "hex"],
    4: ["parentSpanId", "hex"],
    5: ["name", "string"],
    6: ["kind", "varint"],
    7: ["startTimeUnixNano", "fixed64"],
    8: ["endTimeUnixNano", "fixed64"],
    9: ["attributes", "*KeyValue"],
    15: ["status", "Status"],
  },
  Status: { 2: ["message", "string"], 3: ["code", "varint"] },
  Metric: {
    1: ["name", "string"],
    2: ["description", "string"],
    3: ["unit", "string"],
    9: ["histogram", "Histogram"],
  },
  Histogram: { 1: ["dataPoints", "*Point"], 2: ["aggregationTemporality", "varint"] },
  Point: {
    2: ["startTimeUnixNano", "fixed64"],
    3: ["timeUnixNano", "fixed64"],
    4: ["count", "fixed64"],
    5: ["sum", "double"],
    6: ["bucketCounts", "fixed64s"],
    7: ["explicitBounds", "doubles"],
    9: ["attributes", "*KeyValue"],
    11: ["min", "double"],
    12: ["max", "double"],
  },
};

export function decode(message: string, bytes: Buffer): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  let at = 0;
  const readVarint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(readVarint());
    const known = MESSAGES[message]?.[tag >> 3];
    if (known === undefined) throw new Error(`${message} has no field ${tag >> 3}`);
    const [name, type] = known;
    let value: unknown;
    if ((tag & 7) === 0) value = readVarint();
    else if ((tag & 7) === 1) {
      value = type === "double" ? bytes.readDoubleLE(at) : bytes.readBigUInt64LE(at);
      at += 8;
    } else {
      const length = Number(readVarint());
      value = toField(type, bytes.subarray(at, at + length));
      at += length;
    }
    const list = (fields[name] ?? []) as unknown[];
    fields[name] = type.startsWith("*") ? [...list, value] : value;
  }
  return fields;
}

function toField(type: string, bytes: Buffer): unknown {
  const eights = Array.from({ length: bytes.length / 8 }, (_, i) => i * 8);
  if (type === "string") return bytes.toString();
  if (type === "hex") return bytes.toString("hex");
  if (type === "fixed64s") return eights.map((from) => bytes.readBigUInt64LE(from));
  if (type === "doubles") return eights.map((from) => bytes.readDoubleLE(from));
  return decode(type.replace("*", ""), bytes);
}
