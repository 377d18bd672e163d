/** The neutral form into a message. */
import type { Part } from "../neutral/part.ts";
import type { NeutralResponse } from "../neutral/response.ts";
import type { ResponseContext } from "../options.ts";
import { packSignature, separateSignatures } from "../signatures.ts";
import { parseArguments } from "../tool-format.ts";
import { encodeCitation } from "./citations.ts";
import { encodeSearch, encodeSearchCount } from "./search-blocks.ts";
import { encodeStopReason } from "./stop-reason.ts";
import { encodeMessagesUsage, UNKNOWN_USAGE } from "./usage.ts";

export function encodeMessagesResponse(
  response: NeutralResponse,
  context: ResponseContext,
): Record<string, unknown> {
  return {
    id: response.id ?? context.newId("msg_"),
    type: "message",
    role: "assistant",
    model: context.responseModel ?? response.model ?? context.model,
    content: [
      ...response.searches.flatMap((search) => encodeSearch(search, context.newId)),
      ...separateSignatures(response.parts).flatMap(encodeBlock),
    ],
    stop_reason: encodeStopReason(response.stopReason),
    stop_sequence: response.stopSequence,
    usage: {
      ...(response.usage === null ? UNKNOWN_USAGE : encodeMessagesUsage(response.usage)),
      ...encodeSearchCount(response.searches.length),
    },
  };
}

function encodeBlock(part: Part): Record<string, unknown>[] {
  switch (part.type) {
    case "text":
      return [
        {
          type: "text",
          text: part.text,
          citations: part.citations?.map((citation) => encodeCitation(citation, part.text)) ?? null,
        },
      ];
    case "refusal":
      return [{ type: "text", text: part.text, citations: null }];
    case "reasoning":
      if (part.isRedacted && part.origin === "messages")
        return [{ type: "redacted_thinking", data: part.signature }];
      return [{ type: "thinking", thinking: part.text, signature: packSignature(part, "messages") ?? "" }];
    case "tool_call":
      return [{ type: "tool_use", id: part.id, name: part.name, input: parseArguments(part.arguments) }];
    case "image":
    case "file":
    case "audio":
    case "tool_result":
      return [];
  }
}
