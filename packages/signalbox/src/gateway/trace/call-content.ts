/**
 * Prompts and answers for spans, only when asked for: `gen_ai.input.messages` and `gen_ai.output.messages` in the form of the conventions, a list of
 * messages with parts. What is not text stays in the part as it was sent.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import type { AttributeValue } from "../../engines/otlp-export/index.ts";

/** Receivers refuse large spans. */
const MAX_CHARACTERS = 64 * 1024;
/** Of one part, in messages that are longer together. */
const MAX_PART = 8 * 1024;

interface Message {
  readonly role: string;
  readonly parts: readonly Fields[];
}

export function contentAttributes(prompt: Buffer | null, answer: Buffer | null): AttributeValue[] {
  const input = prompt === null ? null : readInput(prompt);
  const output = answer === null ? null : readOutput(answer);
  return [
    ...(input === null ? [] : ["gen_ai.input.messages", toText(input)]),
    ...(output === null ? [] : ["gen_ai.output.messages", toText(output)]),
  ];
}

/** If the messages are too long, long parts are cut and the oldest messages left out: what remains is still JSON. */
function toText(messages: readonly Message[]): string {
  const whole = JSON.stringify(messages);
  if (whole.length <= MAX_CHARACTERS) return whole;
  const kept: string[] = [];
  let length = 1;
  for (const { role, parts } of messages.toReversed()) {
    const text = JSON.stringify({ role, parts: parts.map(cutPart) });
    length += text.length + 1;
    if (length > MAX_CHARACTERS) break;
    kept.unshift(text);
  }
  return `[${kept.join(",")}]`;
}

function cutPart(part: Fields): Fields {
  const { type, content } = part;
  if (type === "text" && typeof content === "string")
    return content.length <= MAX_PART ? part : { type, content: `${content.slice(0, MAX_PART)}…` };
  const { length } = JSON.stringify(part);
  return length <= MAX_PART ? part : { type, truncated: true, characters: length };
}

function parse(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

/** Chat and messages have `messages`, Responses has `input`, Gemini has `contents`. */
function readInput(bytes: Buffer): Message[] | null {
  const body = parse(bytes.toString("utf8"));
  if (body === null) return null;
  const list = body["messages"] ?? body["contents"] ?? body["input"] ?? body["prompt"];
  if (typeof list === "string") return [{ role: "user", parts: partsOf(list) }];
  return Array.isArray(list) ? list.map((item: unknown) => toMessage(item, "user")) : null;
}

function readOutput(bytes: Buffer): Message[] | null {
  const text = bytes.toString("utf8");
  const whole = parse(text);
  if (whole !== null) {
    const { choices, content, candidates, output } = whole;
    if (Array.isArray(choices))
      return choices.map((choice: unknown) =>
        toMessage(isFields(choice) ? choice["message"] : choice, "assistant"),
      );
    if (Array.isArray(candidates))
      return candidates.map((one: unknown) => toMessage(isFields(one) ? one["content"] : one, "assistant"));
    if (Array.isArray(content)) return [{ role: "assistant", parts: content.flatMap(partsOf) }];
    if (Array.isArray(output)) return output.map((item: unknown) => toMessage(item, "assistant"));
    return null;
  }
  const streamed = text
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => deltaOf(parse(line.slice(5).trim())))
    .join("");
  return streamed === "" ? null : [{ role: "assistant", parts: partsOf(streamed) }];
}

/** The text that one event of a stream adds. */
function deltaOf(event: Fields | null): string {
  if (event === null) return "";
  const { choices, delta, candidates } = event;
  const [first] = Array.isArray(choices)
    ? (choices as unknown[])
    : Array.isArray(candidates)
      ? (candidates as unknown[])
      : [];
  if (isFields(first)) {
    const inner = first["delta"] ?? first["content"];
    if (isFields(inner)) return textOf(inner["content"] ?? inner["parts"]);
  }
  return isFields(delta) ? textOf(delta["text"]) : textOf(delta);
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return "";
  return value
    .map((part: unknown) => (isFields(part) && typeof part["text"] === "string" ? part["text"] : ""))
    .join("");
}

function toMessage(value: unknown, fallback: string): Message {
  if (!isFields(value)) return { role: fallback, parts: partsOf(value) };
  const role = typeof value["role"] === "string" ? value["role"] : fallback;
  const content = value["content"] ?? value["parts"] ?? value;
  return { role, parts: Array.isArray(content) ? content.flatMap(partsOf) : partsOf(content) };
}

function partsOf(value: unknown): Fields[] {
  if (typeof value === "string") return [{ type: "text", content: value }];
  if (!isFields(value)) return [];
  return typeof value["text"] === "string" ? [{ type: "text", content: value["text"] }] : [value];
}
