/** A finished span, as its producer describes it. */
export type AttributeValue = string | number | boolean | readonly string[];

/** Name, value, name, value, … A list, because it is built for every call. Numbers that are integers are sent as such. */
export type Attributes = readonly AttributeValue[];

export const SpanKind = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const;

export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: (typeof SpanKind)[keyof typeof SpanKind];
  /** Milliseconds since the epoch, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** Null unless the operation failed. */
  readonly error: string | null;
}
