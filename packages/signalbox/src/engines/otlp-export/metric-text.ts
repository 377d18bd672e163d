/** Attributes and times as OTLP/JSON (opentelemetry-proto, JSON encoding: 64-bit integers as text). */
import type { Attributes, AttributeValue } from "./span.ts";

/** Text without characters that JSON escapes. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
/** Names repeat; those of callers' metadata are bounded by their own limits. */
const keys = new Map<string, string>();
const MAX_KEYS = 1000;

export function attributesText(attributes: Attributes): string {
  let text = "";
  for (let i = 0; i + 1 < attributes.length; i += 2) {
    text += `${i === 0 ? "" : ","}${keyText(String(attributes[i]))}${valueText(attributes[i + 1] ?? "")}}`;
  }
  return text;
}

function keyText(name: string): string {
  let text = keys.get(name);
  if (text === undefined) {
    text = `{"key":${quote(name)},"value":`;
    if (keys.size < MAX_KEYS) keys.set(name, text);
  }
  return text;
}

function valueText(value: AttributeValue): string {
  switch (typeof value) {
    case "string":
      return `{"stringValue":${quote(value)}}`;
    case "number":
      if (Number.isSafeInteger(value)) return `{"intValue":"${value}"}`;
      return `{"doubleValue":${Number.isFinite(value) ? value : 0}}`;
    case "boolean":
      return `{"boolValue":${value}}`;
    default:
      return `{"arrayValue":{"values":[${value.map((one) => `{"stringValue":${quote(one)}}`).join(",")}]}}`;
  }
}

function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Nanoseconds exceed what a number holds exactly, so milliseconds and their fraction are converted one after the other. */
export function toNanos(ms: number): bigint {
  const whole = Math.floor(ms);
  return BigInt(whole) * 1_000_000n + BigInt(Math.floor((ms - whole) * 1_000_000));
}
