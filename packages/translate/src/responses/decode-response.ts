/** A response object into the neutral form. */
import { decodeAnnotations } from "../chat/decode-response.ts";
import { isRecord, listOf, numberOrNull, recordOf, textOf, textOrNull, type Json } from "../json.ts";
import type { Part } from "../neutral/part.ts";
import type { NeutralResponse, StopReason } from "../neutral/response.ts";
import { decodeReasoningItem } from "./decode-input.ts";
import { decodeSearchItem, isSearch } from "./search-item.ts";
import { decodeResponsesUsage } from "./usage.ts";

export function decodeResponsesResponse(body: Json): NeutralResponse {
  const parts = listOf(body["output"]).filter(isRecord).flatMap(decodeItem);
  const usage = body["usage"];
  return {
    id: textOrNull(body["id"]),
    model: textOrNull(body["model"]),
    created: numberOrNull(body["created_at"]),
    parts,
    searches: listOf(body["output"]).filter(isRecord).filter(isSearch).map(decodeSearchItem),
    stopReason: stopReasonOf(body, (type) => parts.some((part) => part.type === type)),
    stopSequence: null,
    usage: isRecord(usage) ? decodeResponsesUsage(usage) : null,
  };
}

export function stopReasonOf(body: Json, has: (type: Part["type"]) => boolean): StopReason {
  const reason = recordOf(body["incomplete_details"])["reason"];
  if (reason === "content_filter") return "refusal";
  if (reason === "max_output_tokens" || body["status"] === "incomplete") return "length";
  if (has("tool_call")) return "tool_calls";
  return has("refusal") ? "refusal" : "stop";
}

/** Calls of hosted tools, but for searches, have no counterpart; their outcome is in the text. */
function decodeItem(item: Json): Part[] {
  switch (item["type"]) {
    case "message":
      return listOf(item["content"]).filter(isRecord).flatMap(decodeContent);
    case "reasoning":
      return [decodeReasoningItem(item)];
    case "function_call":
    case "custom_tool_call": {
      const isCustom = item["type"] === "custom_tool_call";
      return [
        {
          type: "tool_call",
          id: textOf(item["call_id"]),
          name: textOf(item["name"]),
          arguments: textOf(item[isCustom ? "input" : "arguments"]),
          isCustom,
        },
      ];
    }
    default:
      return [];
  }
}

function decodeContent(part: Json): Part[] {
  if (part["type"] === "refusal") return [{ type: "refusal", text: textOf(part["refusal"]) }];
  if (part["type"] !== "output_text") return [];
  const citations = decodeAnnotations(part["annotations"]);
  return [{ type: "text", text: textOf(part["text"]), ...(citations.length > 0 ? { citations } : {}) }];
}
