/**
 * Spans as numbers and texts, for the sender's thread. Text that repeats from span to span (names, models, hosts) is sent once and then by its
 * number; the rest is sent in a list. Writing OTLP/JSON on the main thread took ten times as long.
 *
 * A span in `numbers`: kind, start, end, trace id, span id, parent, name, error, count, then for each attribute its name, its type and its value.
 * A text is a number: n ≥ 0 is an entry of the table of known texts, -1 is none, -2-n is an entry of `texts`.
 */
import type { AttributeValue, Span } from "./span.ts";

export const ValueType = { text: 0, integer: 1, double: 2, flag: 3, list: 4 } as const;
export const NO_TEXT = -1;

/** Enough for names, models and hosts. Callers choose some of them, so the table is bounded; further texts are sent as they are. */
const MAX_KNOWN = 4096;
const MAX_KNOWN_LENGTH = 128;
/** Their values never repeat. */
const UNIQUE: ReadonlySet<string> = new Set([
  "signalbox.call.id",
  "gen_ai.response.id",
  "gen_ai.input.messages",
  "gen_ai.output.messages",
  "signalbox.webhook.delivery_id",
  "url.full",
]);

/** The texts that one sender's thread knows. */
export class KnownTexts {
  readonly #numbers = new Map<string, number>();
  #added: string[] = [];

  /** -1 when the text is not known and cannot be added. */
  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    if (this.#numbers.size >= MAX_KNOWN || text.length > MAX_KNOWN_LENGTH) return -1;
    const number = this.#numbers.size;
    this.#numbers.set(text, number);
    this.#added.push(text);
    return number;
  }

  /** What was added since the last call, which the thread must learn before the batch. */
  takeAdded(): string[] {
    const added = this.#added;
    this.#added = [];
    return added;
  }
}

export class SpanBatch {
  readonly #known: KnownTexts;
  readonly #numbers: number[] = [];
  readonly texts: string[] = [];
  spans = 0;

  constructor(known: KnownTexts) {
    this.#known = known;
  }

  get numbers(): Float64Array {
    return Float64Array.from(this.#numbers);
  }

  add(span: Span): void {
    const { attributes, parentSpanId, error } = span;
    const numbers = this.#numbers;
    this.spans += 1;
    numbers.push(
      span.kind,
      span.startMs,
      span.endMs,
      this.#unique(span.traceId),
      this.#unique(span.spanId),
      parentSpanId === null ? NO_TEXT : this.#unique(parentSpanId),
      this.#text(span.name),
      error === null ? NO_TEXT : this.#text(error),
      attributes.length / 2,
    );
    for (let i = 0; i + 1 < attributes.length; i += 2) {
      const name = attributes[i] as string;
      const value = attributes[i + 1] ?? "";
      numbers.push(this.#text(name));
      if (typeof value === "string")
        numbers.push(ValueType.text, UNIQUE.has(name) ? this.#unique(value) : this.#text(value));
      else this.#value(value);
    }
  }

  #value(value: Exclude<AttributeValue, string>): void {
    const numbers = this.#numbers;
    if (typeof value === "number")
      numbers.push(
        Number.isSafeInteger(value) ? ValueType.integer : ValueType.double,
        Number.isFinite(value) ? value : 0,
      );
    else if (typeof value === "boolean") numbers.push(ValueType.flag, value ? 1 : 0);
    else {
      numbers.push(ValueType.list, value.length);
      for (const one of value) numbers.push(this.#text(one));
    }
  }

  #text(text: string): number {
    const number = this.#known.numberOf(text);
    return number === -1 ? this.#unique(text) : number;
  }

  #unique(text: string): number {
    return -1 - this.texts.push(text);
  }
}
