/**
 * Reasoning on chat messages. OpenAI's own chat completions has none; providers of its shape agree on
 * `reasoning_content` (text) and `reasoning_details` (a list of typed entries with signatures).
 */
import { isRecord, listOf, textOf, textOrNull, type Json } from "../json.ts";
import type { Dialect } from "../dialect.ts";
import type { Part, ReasoningPart } from "../neutral/part.ts";
import { NO_SIGNATURE, type Signature } from "../signatures.ts";

/** Who made the signature of an entry. */
export const REASONING_FORMATS: Readonly<Record<Dialect, string>> = {
  chat: "unknown",
  messages: "anthropic-claude-v1",
  responses: "openai-responses-v1",
  gemini: "google-gemini-v1",
};

function originOf(format: unknown): Dialect {
  if (format === REASONING_FORMATS.messages) return "messages";
  if (format === REASONING_FORMATS.gemini) return "gemini";
  return format === REASONING_FORMATS.responses ? "responses" : "chat";
}

/** The reasoning on a message or in a delta. Details win over the plain text, which repeats them. */
export function decodeReasoning(message: Json): Part[] {
  const parts = listOf(message["reasoning_details"]).flatMap((entry) =>
    isRecord(entry) ? decodeReasoningDetail(entry) : [],
  );
  if (parts.length > 0) return parts;
  const text = reasoningTextOf(message);
  return text === "" ? [] : [{ type: "reasoning", text, ...NO_SIGNATURE }];
}

/** Two spellings are in use: `reasoning_content` (DeepSeek, Qwen, vLLM) and `reasoning` (OpenRouter, Groq). */
export function reasoningTextOf(message: Json): string {
  const content = message["reasoning_content"];
  return typeof content === "string" && content !== "" ? content : textOf(message["reasoning"]);
}

export function decodeReasoningDetail(entry: Json): ReasoningPart[] {
  const origin = originOf(entry["format"]);
  const id = textOrNull(entry["id"]);
  switch (entry["type"]) {
    case "reasoning.encrypted": {
      const signature = textOrNull(entry["data"]);
      if (signature === null) return [];
      return [{ type: "reasoning", text: "", signature, origin, id, isRedacted: origin === "messages" }];
    }
    case "reasoning.summary":
      return [{ type: "reasoning", text: textOf(entry["summary"]), ...NO_SIGNATURE, id }];
    default: {
      const signature = textOrNull(entry["signature"]);
      const sign: Signature =
        signature === null ? NO_SIGNATURE : { signature, origin, id, isRedacted: false };
      return [{ type: "reasoning", text: textOf(entry["text"]), ...sign }];
    }
  }
}

/** One entry of `reasoning_details`. `index` counts the entries of the message. */
export function encodeReasoningDetail(part: ReasoningPart, index: number): Record<string, unknown> {
  const format = REASONING_FORMATS[part.origin ?? "chat"];
  const id = part.id === null ? {} : { id: part.id };
  if (part.signature !== null && part.text === "") {
    return { type: "reasoning.encrypted", data: part.signature, ...id, format, index };
  }
  return {
    type: "reasoning.text",
    text: part.text,
    ...(part.signature === null ? {} : { signature: part.signature }),
    ...id,
    format,
    index,
  };
}

/** The fields of a message that hold `parts`; none without reasoning. */
export function encodeReasoning(parts: readonly ReasoningPart[]): Record<string, unknown> {
  if (parts.length === 0) return {};
  const text = parts
    .map((part) => part.text)
    .filter((part) => part !== "")
    .join("\n\n");
  return {
    ...(text === "" ? {} : { reasoning_content: text }),
    reasoning_details: parts.map(encodeReasoningDetail),
  };
}
