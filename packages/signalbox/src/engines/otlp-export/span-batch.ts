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

/** Doubles also where the value is a whole number: a receiver keeps the type that it sees first. */
const DOUBLES: ReadonlySet<string> = new Set(["gen_ai.usage.cost", "gen_ai.response.time_to_first_chunk"]);

/** About ten calls: every list of receivers has an open batch, and most have few calls in five seconds. */
const FIRST_NUMBERS = 1024;
/** Of a span without its attributes, and of an attribute without the elements of a list. */
const SPAN_NUMBERS = 9;
const ATTRIBUTE_NUMBERS = 3;

/** The texts that the sender's thread knows by their numbers. */
export class KnownTexts {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];

  /** -1 when the text is not known and cannot be added. */
  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#texts.length;
    if (number >= MAX_KNOWN || text.length > MAX_KNOWN_LENGTH) return -1;
    this.#numbers.set(text, number);
    this.#texts.push(text);
    return number;
  }

  /** The texts from a number on, which a thread must learn before a batch. */
  from(number: number): string[] {
    return number === this.#texts.length ? [] : this.#texts.slice(number);
  }
}

export class SpanBatch {
  readonly #known: KnownTexts;
  #numbers = new Float64Array(FIRST_NUMBERS);
  #length = 0;
  readonly texts: string[] = [];
  spans = 0;
  /** Calls or turns, each with one or more spans. */
  additions = 0;

  constructor(known: KnownTexts) {
    this.#known = known;
  }

  /** A copy for one receiver: its memory moves to the sender's thread. */
  copyNumbers(): Float64Array<ArrayBuffer> {
    return this.#numbers.slice(0, this.#length);
  }

  add(span: Span): void {
    const { attributes, parentSpanId, error } = span;
    this.spans += 1;
    this.#reserve(SPAN_NUMBERS);
    this.#push(span.kind);
    this.#push(span.startMs);
    this.#push(span.endMs);
    this.#push(this.#unique(span.traceId));
    this.#push(this.#unique(span.spanId));
    this.#push(parentSpanId === null ? NO_TEXT : this.#unique(parentSpanId));
    this.#push(this.#text(span.name));
    this.#push(error === null ? NO_TEXT : this.#text(error));
    this.#push(attributes.length / 2);
    for (let i = 0; i + 1 < attributes.length; i += 2) {
      const name = attributes[i] as string;
      const value = attributes[i + 1] ?? "";
      this.#reserve(ATTRIBUTE_NUMBERS);
      this.#push(this.#text(name));
      if (typeof value === "string") {
        this.#push(ValueType.text);
        this.#push(UNIQUE.has(name) ? this.#unique(value) : this.#text(value));
      } else this.#value(name, value);
    }
  }

  #value(name: string, value: Exclude<AttributeValue, string>): void {
    if (typeof value === "number") {
      this.#push(Number.isSafeInteger(value) && !DOUBLES.has(name) ? ValueType.integer : ValueType.double);
      this.#push(Number.isFinite(value) ? value : 0);
    } else if (typeof value === "boolean") {
      this.#push(ValueType.flag);
      this.#push(value ? 1 : 0);
    } else {
      this.#reserve(ATTRIBUTE_NUMBERS + value.length);
      this.#push(ValueType.list);
      this.#push(value.length);
      for (const one of value) this.#push(this.#text(one));
    }
  }

  #push(value: number): void {
    this.#numbers[this.#length++] = value;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#numbers.length) return;
    const grown = new Float64Array(Math.max(2 * this.#numbers.length, this.#length + count));
    grown.set(this.#numbers.subarray(0, this.#length));
    this.#numbers = grown;
  }

  #text(text: string): number {
    const number = this.#known.numberOf(text);
    return number === -1 ? this.#unique(text) : number;
  }

  #unique(text: string): number {
    return -1 - this.texts.push(text);
  }
}
