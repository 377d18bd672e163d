/** The spans of a batch as objects of OTLP/JSON, in the sender's thread. */
import { NO_TEXT, ValueType } from "./span-batch.ts";
import { toNanos } from "./metric-text.ts";

const ERROR = 2;

export function readSpans(
  numbers: Float64Array,
  texts: readonly string[],
  known: readonly string[],
): object[] {
  const spans: object[] = [];
  let at = 0;
  const number = () => numbers[at++] ?? 0;
  const text = () => {
    const reference = number();
    return (reference >= 0 ? known[reference] : texts[-2 - reference]) ?? "";
  };
  const textOrNone = () => {
    if (numbers[at] !== NO_TEXT) return text();
    at += 1;
    return null;
  };
  const value = () => {
    switch (number()) {
      case ValueType.text:
        return { stringValue: text() };
      case ValueType.integer:
        return { intValue: String(BigInt(number())) };
      case ValueType.double:
        return { doubleValue: number() };
      case ValueType.flag:
        return { boolValue: number() === 1 };
      default: {
        const length = number();
        return { arrayValue: { values: Array.from({ length }, () => ({ stringValue: text() })) } };
      }
    }
  };
  while (at < numbers.length) {
    const [kind, startMs, endMs] = [number(), number(), number()];
    const [traceId, spanId, parentSpanId, name, error] = [text(), text(), textOrNone(), text(), textOrNone()];
    const length = number();
    spans.push({
      traceId,
      spanId,
      ...(parentSpanId === null ? {} : { parentSpanId }),
      name,
      kind,
      startTimeUnixNano: String(toNanos(startMs)),
      endTimeUnixNano: String(toNanos(endMs)),
      attributes: Array.from({ length }, () => ({ key: text(), value: value() })),
      status: error === null ? {} : { code: ERROR, message: error },
    });
  }
  return spans;
}
