/** The neutral form into a Gemini response. */
import type { Part } from "../neutral/part.ts";
import type { NeutralResponse } from "../neutral/response.ts";
import type { ResponseContext } from "../options.ts";
import { packSignature } from "../signatures.ts";
import { parseArguments } from "../tool-format.ts";
import { encodeGeminiCitations } from "./citations.ts";
import { encodeGeminiSearches } from "./searches.ts";
import { encodeGeminiFinish } from "./stop-reason.ts";
import { encodeGeminiUsage } from "./usage.ts";

type Item = Record<string, unknown>;

export function encodeGeminiResponse(response: NeutralResponse, context: ResponseContext): Item {
  const citations = response.parts.flatMap((part) => (part.type === "text" ? (part.citations ?? []) : []));
  return {
    candidates: [
      {
        content: { role: "model", parts: encodeGeminiParts(response.parts) },
        finishReason: encodeGeminiFinish(response.stopReason),
        index: 0,
        ...encodeGeminiCitations(citations),
        ...encodeGeminiSearches(response.searches),
      },
    ],
    ...(response.usage === null ? {} : { usageMetadata: encodeGeminiUsage(response.usage) }),
    modelVersion: context.responseModel ?? response.model ?? context.model,
    responseId: response.id ?? context.newId("resp_"),
  };
}

/** Signatures of other providers stand on thoughts, Gemini's own on texts and calls. */
export function encodeGeminiParts(parts: readonly Part[]): Item[] {
  return parts.flatMap((part): Item[] => {
    switch (part.type) {
      case "text":
        return [{ text: part.text, ...signature(part.signature) }];
      case "refusal":
        return [{ text: part.text }];
      case "reasoning":
        return [{ text: part.text, thought: true, ...signature(packSignature(part, "gemini") ?? undefined) }];
      case "tool_call":
        return [
          {
            functionCall: { id: part.id, name: part.name, args: parseArguments(part.arguments) },
            ...signature(part.signature),
          },
        ];
      case "image":
      case "file":
      case "audio":
      case "tool_result":
        return [];
    }
  });
}

function signature(text: string | undefined): Item {
  return text === undefined ? {} : { thoughtSignature: text };
}
