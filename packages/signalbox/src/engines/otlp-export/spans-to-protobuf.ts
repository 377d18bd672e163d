/**
 * The spans of a batch as protobuf, in the sender's thread, without an object for each member: that took four times as long. The bytes are those that
 * `toProtobuf` makes of `readSpans`; a test compares both. The keys are numbers of fields in opentelemetry-proto with their wire types.
 */
import { toNanos } from "./metric-text.ts";
import { NO_TEXT, ValueType } from "./span-batch.ts";
import { ProtobufWriter } from "./to-protobuf.ts";

/** Around the spans. */
export interface SpanFrame {
  readonly resource: object;
  readonly scope: object;
  readonly schemaUrl: string;
}

const DATA = { resourceSpans: 0x0a } as const;
const RESOURCE_SPANS = { resource: 0x0a, scopeSpans: 0x12, schemaUrl: 0x1a } as const;
const SCOPE_SPANS = { scope: 0x0a, span: 0x12, schemaUrl: 0x1a } as const;
const SPAN = {
  traceId: 0x0a,
  spanId: 0x12,
  parentSpanId: 0x22,
  name: 0x2a,
  kind: 0x30,
  start: 0x39,
  end: 0x41,
  attribute: 0x4a,
  status: 0x7a,
} as const;
const STATUS = { message: 0x12, code: 0x18 } as const;
const ERROR = 2;
/** The key of an attribute and a value that is a text are the same bytes: both are the first field. */
const TEXT = 0x0a;
const VALUE = 0x12;
const ANY = { flag: 0x10, integer: 0x18, double: 0x21, list: 0x2a } as const;
const ELEMENT = 0x0a;

/** Texts that the thread knows, as the field `TEXT`. */
export class EncodedTexts {
  readonly #known: readonly string[];
  readonly #fields: Uint8Array[] = [];

  constructor(known: readonly string[]) {
    this.#known = known;
  }

  text(number: number): string {
    return this.#known[number] ?? "";
  }

  field(number: number): Uint8Array {
    return (this.#fields[number] ??= encode(this.text(number)));
  }
}

function encode(text: string): Uint8Array {
  const writer = new ProtobufWriter();
  writer.text(TEXT, text);
  // A copy: the writer's buffer is large.
  return Uint8Array.from(writer.take());
}

export function spansToProtobuf(
  numbers: Float64Array,
  texts: readonly string[],
  known: EncodedTexts,
  { resource, scope, schemaUrl }: SpanFrame,
): Buffer {
  const writer = new ProtobufWriter();
  const resourceSpans = writer.open(DATA.resourceSpans);
  const resourceStart = writer.open(RESOURCE_SPANS.resource);
  writer.message("Resource", resource as Record<string, unknown>);
  writer.close(resourceStart);
  const scopeSpans = writer.open(RESOURCE_SPANS.scopeSpans);
  const scopeStart = writer.open(SCOPE_SPANS.scope);
  writer.message("Scope", scope as Record<string, unknown>);
  writer.close(scopeStart);
  new SpanWriter(writer, numbers, texts, known).writeAll();
  writer.text(SCOPE_SPANS.schemaUrl, schemaUrl);
  writer.close(scopeSpans);
  writer.text(RESOURCE_SPANS.schemaUrl, schemaUrl);
  writer.close(resourceSpans);
  return writer.take();
}

class SpanWriter {
  readonly #writer: ProtobufWriter;
  readonly #numbers: Float64Array;
  readonly #texts: readonly string[];
  readonly #known: EncodedTexts;
  #at = 0;

  constructor(writer: ProtobufWriter, numbers: Float64Array, texts: readonly string[], known: EncodedTexts) {
    this.#writer = writer;
    this.#numbers = numbers;
    this.#texts = texts;
    this.#known = known;
  }

  writeAll(): void {
    const writer = this.#writer;
    while (this.#at < this.#numbers.length) {
      const start = writer.open(SCOPE_SPANS.span);
      this.#span();
      writer.close(start);
    }
  }

  #span(): void {
    const writer = this.#writer;
    const kind = this.#number();
    const startMs = this.#number();
    const endMs = this.#number();
    writer.text(SPAN.traceId, this.#text(this.#number()), "hex");
    writer.text(SPAN.spanId, this.#text(this.#number()), "hex");
    const parent = this.#number();
    if (parent !== NO_TEXT) writer.text(SPAN.parentSpanId, this.#text(parent), "hex");
    writer.text(SPAN.name, this.#text(this.#number()));
    writer.integer(SPAN.kind, kind);
    writer.fixed64(SPAN.start, toNanos(startMs));
    writer.fixed64(SPAN.end, toNanos(endMs));
    const error = this.#number();
    for (let left = this.#number(); left > 0; left--) {
      const start = writer.open(SPAN.attribute);
      this.#textField(this.#number());
      const value = writer.open(VALUE);
      this.#value();
      writer.close(value);
      writer.close(start);
    }
    const status = writer.open(SPAN.status);
    if (error !== NO_TEXT) {
      writer.integer(STATUS.code, ERROR);
      writer.text(STATUS.message, this.#text(error));
    }
    writer.close(status);
  }

  #value(): void {
    const writer = this.#writer;
    const type = this.#number();
    const value = this.#number();
    if (type === ValueType.text) this.#textField(value);
    else if (type === ValueType.integer) writer.integer(ANY.integer, value);
    else if (type === ValueType.double) writer.double(ANY.double, value);
    else if (type === ValueType.flag) writer.integer(ANY.flag, value);
    else {
      const list = writer.open(ANY.list);
      for (let left = value; left > 0; left--) {
        const element = writer.open(ELEMENT);
        this.#textField(this.#number());
        writer.close(element);
      }
      writer.close(list);
    }
  }

  #number(): number {
    return this.#numbers[this.#at++] ?? 0;
  }

  #text(reference: number): string {
    return (reference >= 0 ? this.#known.text(reference) : this.#texts[-2 - reference]) ?? "";
  }

  #textField(reference: number): void {
    if (reference >= 0) this.#writer.encoded(this.#known.field(reference));
    else this.#writer.text(TEXT, this.#text(reference));
  }
}
