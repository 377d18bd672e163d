/**
 * OTLP/JSON to protobuf. The table lists the messages of opentelemetry-proto 1.x as far as this service sends them: name in JSON, number of the
 * field, type. A member that the table does not know would be lost, so it is an error.
 */
type Scalar = "string" | "hex" | "enum" | "fixed64" | "int64" | "double" | "bool";
type FieldType = Scalar | "fixed64s" | "doubles" | MessageName;

interface Field {
  /** Number and wire type. */
  readonly key: number;
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

/** By message: the fields of the table with their keys, which are all below 128 and so one byte. */
const KEYS: ReadonlyMap<string, ReadonlyMap<string, Field>> = new Map(
  Object.entries(FIELDS).map(([message, fields]) => [
    message,
    new Map(
      Object.entries<readonly [number, FieldType]>(fields).map(([name, [number, type]]) => [
        name,
        { key: (number << 3) | wireType(type), type },
      ]),
    ),
  ]),
);

function wireType(type: FieldType): number {
  if (type === "enum" || type === "bool" || type === "int64") return VARINT;
  return type === "fixed64" || type === "double" ? FIXED64 : BYTES;
}

export function toProtobuf(message: "TracesData" | "MetricsData", value: object): Buffer {
  const writer = new ProtobufWriter();
  writer.message(message, value as Fields);
  return writer.take();
}

type Fields = Readonly<Record<string, unknown>>;

const FIRST_BYTES = 64 * 1024;
/** A character of a text has at most three bytes in UTF-8. */
const MAX_BYTES_PER_CHARACTER = 3;
const LONGEST_VARINT = 10;

/** One buffer for all: a batch has thousands of small members, and a buffer for each took most of the time. */
export class ProtobufWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #at = 0;

  take(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  message(message: string, value: Fields): void {
    for (const name in value) {
      const field = KEYS.get(message)?.get(name);
      if (field === undefined) throw new Error(`OTLP: ${message} has no member ${name}`);
      const member = value[name];
      const isRepeated = Array.isArray(member) && field.type !== "fixed64s" && field.type !== "doubles";
      if (!isRepeated) this.#field(field, member);
      else for (const one of member as unknown[]) this.#field(field, one);
    }
  }

  /** Begins a message in a message; `close` takes what is returned. `key`: number of the field and wire type, in one byte. */
  open(key: number): number {
    this.#key(key);
    return ++this.#at;
  }

  /** Writes the length of what was written since. Most lengths are one byte; for the others the content is moved. */
  close(start: number): void {
    this.#setLength(start);
  }

  /** A field that was encoded before. */
  encoded(field: Uint8Array): void {
    this.#reserve(field.length);
    this.#bytes.set(field, this.#at);
    this.#at += field.length;
  }

  text(key: number, text: string, encoding: "utf8" | "hex" = "utf8"): void {
    this.#key(key);
    this.#text(text, encoding);
  }

  integer(key: number, value: number): void {
    this.#key(key);
    this.#integer(value);
  }

  double(key: number, value: number): void {
    this.#key(key);
    this.#double(value);
  }

  fixed64(key: number, value: bigint): void {
    this.#key(key);
    this.#at = this.#bytes.writeBigUInt64LE(value, this.#at);
  }

  /** Also reserves what a number takes. */
  #key(key: number): void {
    this.#reserve(1 + LONGEST_VARINT);
    this.#bytes[this.#at++] = key;
  }

  #field({ key, type }: Field, value: unknown): void {
    this.#key(key);
    switch (type) {
      case "string":
        return this.#text(value as string, "utf8");
      case "hex":
        return this.#text(value as string, "hex");
      case "enum":
      case "bool":
      case "int64":
        return this.#integer(value as string | number | boolean);
      case "fixed64":
        return this.#fixed64(value);
      case "double":
        return this.#double(value);
      case "fixed64s":
        return this.#sized(() => {
          for (const one of value as unknown[]) this.#fixed64(one);
        });
      case "doubles":
        return this.#sized(() => {
          for (const one of value as unknown[]) this.#double(one);
        });
      default:
        return this.#sized(() => this.message(type, value as Fields));
    }
  }

  /** Writes the length of what `write` writes before it. */
  #sized(write: () => void): void {
    this.#reserve(1);
    const start = ++this.#at;
    write();
    this.#setLength(start);
  }

  #text(text: string, encoding: "utf8" | "hex"): void {
    this.#reserve(1 + LONGEST_VARINT + text.length * MAX_BYTES_PER_CHARACTER);
    const start = ++this.#at;
    this.#at += this.#bytes.write(text, start, encoding);
    this.#setLength(start);
  }

  #setLength(start: number): void {
    const length = this.#at - start;
    if (length < 0x80) {
      this.#bytes[start - 1] = length;
      return;
    }
    const moved = varintBytes(length) - 1;
    this.#reserve(moved);
    this.#bytes.copyWithin(start + moved, start, this.#at);
    const end = this.#at + moved;
    this.#at = start - 1;
    this.#varint(length);
    this.#at = end;
  }

  #integer(value: string | number | boolean): void {
    const number = Number(value);
    if (number >= 0 && Number.isSafeInteger(number)) this.#varint(number);
    else this.#bigVarint(BigInt(value));
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#at++] = rest;
  }

  /** Negative numbers are written as 64 bits in two's complement. */
  #bigVarint(value: bigint): void {
    let rest = BigInt.asUintN(64, value);
    while (rest > 0x7fn) {
      this.#bytes[this.#at++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#at++] = Number(rest);
  }

  #fixed64(value: unknown): void {
    this.#reserve(8);
    this.#at = this.#bytes.writeBigUInt64LE(BigInt(value as string), this.#at);
  }

  #double(value: unknown): void {
    this.#reserve(8);
    this.#at = this.#bytes.writeDoubleLE(value as number, this.#at);
  }

  #reserve(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#at + count));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}
