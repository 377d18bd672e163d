/** The neutral form into a response object. */
import type { Part } from "../neutral/part.ts";
import type { NeutralResponse } from "../neutral/response.ts";
import type { ResponseContext } from "../options.ts";
import { separateSignatures } from "../signatures.ts";
import { encodeCallItem, encodeOutputText, encodeReasoningItem } from "./output-item.ts";
import { encodeResponseObject } from "./response-object.ts";
import { encodeSearchItem } from "./search-item.ts";

type Item = Record<string, unknown>;

export function encodeResponsesResponse(response: NeutralResponse, context: ResponseContext): Item {
  return encodeResponseObject(
    {
      id: response.id ?? context.newId("resp_"),
      created: response.created ?? context.now,
      model: context.responseModel ?? response.model ?? context.model,
      output: [
        ...response.searches.map((search) => encodeSearchItem(search, context.newId("ws_"), "completed")),
        ...encodeOutput(separateSignatures(response.parts), context),
      ],
      stopReason: response.stopReason,
      usage: response.usage,
    },
    context,
  );
}

/** Texts that stand together make one message item. */
function encodeOutput(parts: readonly Part[], context: ResponseContext): Item[] {
  const items: Item[] = [];
  let content: Item[] | null = null;
  for (const part of parts) {
    if (part.type === "text" || part.type === "refusal") {
      if (content === null) {
        content = [];
        items.push({
          id: context.newId("msg_"),
          type: "message",
          status: "completed",
          role: "assistant",
          content,
        });
      }
      content.push(
        part.type === "text"
          ? encodeOutputText(part.text, part.citations ?? [])
          : { type: "refusal", refusal: part.text },
      );
      continue;
    }
    content = null;
    if (part.type === "reasoning") items.push(encodeReasoningItem(part, context.newId));
    else if (part.type === "tool_call") {
      items.push(encodeCallItem(part, context.newId(part.isCustom ? "ctc_" : "fc_"), "completed"));
    }
  }
  return items;
}
