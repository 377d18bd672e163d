/** A message into the neutral form. */
import { isRecord, listOf, recordOf, textOf, textOrNull, type Json } from "../json.ts";
import type { Part } from "../neutral/part.ts";
import type { NeutralResponse } from "../neutral/response.ts";
import { unpackSignature } from "../signatures.ts";
import { decodeCitations } from "./citations.ts";
import { decodeRedacted } from "./decode-blocks.ts";
import { decodeSearches } from "./search-blocks.ts";
import { decodeStopReason } from "./stop-reason.ts";
import { decodeMessagesUsage } from "./usage.ts";

export function decodeMessagesResponse(body: Json): NeutralResponse {
  const usage = body["usage"];
  return {
    id: textOrNull(body["id"]),
    model: textOrNull(body["model"]),
    created: null,
    parts: listOf(body["content"]).filter(isRecord).flatMap(decodeBlock),
    searches: decodeSearches(listOf(body["content"]).filter(isRecord)),
    stopReason: decodeStopReason(body["stop_reason"]),
    stopSequence: textOrNull(body["stop_sequence"]),
    usage: isRecord(usage) ? decodeMessagesUsage(usage) : null,
  };
}

/** Blocks of tools that the provider ran itself, but for searches, have no counterpart; their outcome is in the text. */
function decodeBlock(block: Json): Part[] {
  switch (block["type"]) {
    case "text": {
      const citations = decodeCitations(block["citations"]);
      return [{ type: "text", text: textOf(block["text"]), ...(citations.length > 0 ? { citations } : {}) }];
    }
    case "thinking":
      return [
        {
          type: "reasoning",
          text: textOf(block["thinking"]),
          ...unpackSignature(textOrNull(block["signature"]), "messages"),
        },
      ];
    case "redacted_thinking":
      return [decodeRedacted(textOf(block["data"]))];
    case "tool_use":
      return [
        {
          type: "tool_call",
          id: textOf(block["id"]),
          name: textOf(block["name"]),
          arguments: JSON.stringify(recordOf(block["input"])),
          isCustom: false,
        },
      ];
    default:
      return [];
  }
}
