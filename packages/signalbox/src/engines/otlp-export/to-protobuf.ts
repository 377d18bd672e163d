/**
 * OTLP/JSON to protobuf. The table lists the messages of opentelemetry-proto 1.x as far as this service sends them: name in JSON, number of the
 * field, type. A member that the table does not know would be lost, so it is an error.
 */
type Scalar = "string" | "hex" | "enum" | "fixed64" | "int64" | "double" | "bool";
type FieldType = Scalar | "fixed64s" | "doubles" | MessageName;

interface Field {
  readonly number: number;
  readonly type: FieldType;
}

type MessageName = keyof typeof FIELDS;

const FIELDS = {
  TracesData: { resourceSpans: [1, "ResourceSpans"] },
  ResourceSpans: { resource: [1, "Resource"], scopeSpans: [2, "ScopeSpans"], schemaUrl: [3, "string"] },
  ScopeSpans: { scope: [1, "Scope"], spans: [2, "Span"], schemaUrl: [3, "string"] },
  Resource: { attributes: [1, "KeyValue"] },
  Scope: { name: [1, "string"], version: [2, "string"] },
  Span: {
    traceId: [1, "hex"],
    spanId: [2, "hex"],
    parentSpanId: [4, "hex"],
    name: [5, "string"],
    kind: [6, "enum"],
    startTimeUnixNano: [7, "fixed64"],
    endTimeUnixNano: [8, "fixed64"],
    attributes: [9, "KeyValue"],
    status: [15, "Status"],
  },
  Status: { message: [2, "string"], code: [3, "enum"] },
  KeyValue: { key: [1, "string"], value: [2, "AnyValue"] },
  AnyValue: {
    stringValue: [1, "string"],
    boolValue: [2, "bool"],
    intValue: [3, "int64"],
    doubleValue: [4, "double"],
    arrayValue: [5, "ArrayValue"],
  },
  ArrayValue: { values: [1, "AnyValue"] },
  MetricsData: { resourceMetrics: [1, "ResourceMetrics"] },
  ResourceMetrics: { resource: [1, "Resource"], scopeMetrics: [2, "ScopeMetrics"], schemaUrl: [3, "string"] },
  ScopeMetrics: { scope: [1, "Scope"], metrics: [2, "Metric"], schemaUrl: [3, "string"] },
  Metric: {
    name: [1, "string"],
    description: [2, "string"],
    unit: [3, "string"],
    histogram: [9, "Histogram"],
  },
  Histogram: { dataPoints: [1, "HistogramDataPoint"], aggregationTemporality: [2, "enum"] },
  HistogramDataPoint: {
    startTimeUnixNano: [2, "fixed64"],
    timeUnixNano: [3, "fixed64"],
    count: [4, "fixed64"],
    sum: [5, "double"],
    bucketCounts: [6, "fixed64s"],
    explicitBounds: [7, "doubles"],
    attributes: [9, "KeyValue"],
    min: [11, "double"],
    max: [12, "double"],
  },
} as const;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

export function toProtobuf(message: "TracesData" | "MetricsData", value: object): Buffer {
  return encode(message, value as Record<string, unknown>);
}

function encode(message: MessageName, value: Readonly<Record<string, unknown>>): Buffer {
  const parts: Buffer[] = [];
  for (const [name, member] of Object.entries(value)) {
    const { number, type } = fieldOf(message, name);
    const isRepeated = Array.isArray(member) && type !== "fixed64s" && type !== "doubles";
    for (const one of isRepeated ? (member as unknown[]) : [member]) encodeField(parts, number, type, one);
  }
  return Buffer.concat(parts);
}

function fieldOf(message: MessageName, name: string): Field {
  const fields: Readonly<Record<string, readonly [number, FieldType]>> = FIELDS[message];
  const found = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (found === undefined) throw new Error(`OTLP: ${message} has no member ${name}`);
  return { number: found[0], type: found[1] };
}

function encodeField(parts: Buffer[], number: number, type: FieldType, value: unknown): void {
  switch (type) {
    case "string":
      return pushBytes(parts, number, Buffer.from(value as string));
    case "hex":
      return pushBytes(parts, number, Buffer.from(value as string, "hex"));
    case "enum":
    case "bool":
    case "int64":
      parts.push(varint((number << 3) | VARINT), varint(BigInt(value as string | number | boolean)));
      return undefined;
    case "fixed64":
      parts.push(varint((number << 3) | FIXED64), fixed64(value));
      return undefined;
    case "double":
      parts.push(varint((number << 3) | FIXED64), double(value));
      return undefined;
    case "fixed64s":
      return pushBytes(parts, number, Buffer.concat((value as unknown[]).map(fixed64)));
    case "doubles":
      return pushBytes(parts, number, Buffer.concat((value as unknown[]).map(double)));
    default:
      return pushBytes(parts, number, encode(type, value as Record<string, unknown>));
  }
}

function pushBytes(parts: Buffer[], number: number, bytes: Buffer): void {
  parts.push(varint((number << 3) | BYTES), varint(bytes.length), bytes);
}

function varint(value: number | bigint): Buffer {
  // Negative numbers are written as 64 bits in two's complement.
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

function fixed64(value: unknown): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value as string));
  return bytes;
}

function double(value: unknown): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value as number);
  return bytes;
}
