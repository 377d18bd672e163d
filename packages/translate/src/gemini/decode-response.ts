/** A Gemini response into the neutral form. */
import { isRecord, listOf, recordOf, textOrNull, type Json } from "../json.ts";
import type { Part } from "../neutral/part.ts";
import type { NeutralResponse } from "../neutral/response.ts";
import type { NewId } from "../response-codec.ts";
import { decodeGeminiCitations } from "./citations.ts";
import { decodeGeminiSearches } from "./searches.ts";
import { decodeGeminiFinish } from "./stop-reason.ts";
import { decodeGeminiUsage } from "./usage.ts";

export function decodeGeminiResponse(body: Json, newId: NewId): NeutralResponse {
  const candidate = recordOf(listOf(body["candidates"])[0]);
  const parts = listOf(recordOf(candidate["content"])["parts"])
    .filter(isRecord)
    .flatMap((part) => decodeGeminiPart(part, newId));
  const citations = decodeGeminiCitations(candidate);
  const last = parts.findLastIndex((part) => part.type === "text");
  const text = parts[last];
  if (citations.length > 0 && text?.type === "text") parts[last] = { ...text, citations };
  const usage = body["usageMetadata"];
  const isBlocked = recordOf(body["promptFeedback"])["blockReason"] !== undefined;
  return {
    id: textOrNull(body["responseId"]),
    model: textOrNull(body["modelVersion"]),
    created: null,
    parts: joinTexts(parts),
    searches: decodeGeminiSearches(candidate),
    stopReason: isBlocked
      ? "refusal"
      : decodeGeminiFinish(
          candidate["finishReason"],
          parts.some((part) => part.type === "tool_call"),
        ),
    stopSequence: null,
    usage: isRecord(usage) ? decodeGeminiUsage(usage) : null,
  };
}

export function decodeGeminiPart(part: Json, newId: NewId): Part[] {
  const signature = textOrNull(part["thoughtSignature"]);
  const signed = signature === null ? {} : { signature };
  const { text } = part;
  if (typeof text === "string") {
    if (part["thought"] !== true) return [{ type: "text", text, ...signed }];
    const origin = signature === null ? null : "gemini";
    return [{ type: "reasoning", text, signature, origin, id: null, isRedacted: false }];
  }
  const call = part["functionCall"];
  if (!isRecord(call)) return [];
  const id = textOrNull(call["id"]);
  return [
    {
      type: "tool_call",
      id: id === null || id === "" ? newId("call_") : id,
      name: textOrNull(call["name"]) ?? "",
      arguments: JSON.stringify(recordOf(call["args"])),
      isCustom: false,
      ...signed,
    },
  ];
}

/** Gemini cuts one text into several parts; an empty text is only the bearer of a signature. */
function joinTexts(parts: readonly Part[]): Part[] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.type === "text" && last?.type === "text")
      joined[joined.length - 1] = { ...last, ...part, text: last.text + part.text };
    else if (part.type === "reasoning" && last?.type === "reasoning" && last.signature === null) {
      joined[joined.length - 1] = { ...part, text: last.text + part.text };
    } else joined.push(part);
  }
  return joined.filter((part) => part.type !== "text" || part.text !== "" || part.signature !== undefined);
}
