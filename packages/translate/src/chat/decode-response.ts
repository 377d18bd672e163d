/** A chat completion into the neutral form. Read leniently: providers of this shape differ. */
import { isRecord, listOf, numberOrNull, recordOf, textOf, textOrNull, type Json } from "../json.ts";
import type { Citation, Part } from "../neutral/part.ts";
import type { NeutralResponse } from "../neutral/response.ts";
import type { NewId } from "../response-codec.ts";
import { NO_SIGNATURE } from "../signatures.ts";
import { readContent } from "./content.ts";
import { decodeReasoning } from "./reasoning-fields.ts";
import { decodeFinishReason } from "./stop-reason.ts";
import { decodeChatUsage } from "./usage.ts";

export function decodeChatResponse(body: Json, newId: NewId): NeutralResponse {
  const choice = recordOf(listOf(body["choices"])[0]);
  const message = recordOf(choice["message"]);
  const parts: Part[] = decodeReasoning(message);
  const annotations = decodeAnnotations(message["annotations"]);
  const citations = annotations.length > 0 ? annotations : decodeSources(body);
  for (const { type, text } of readContent(message["content"])) {
    if (type === "reasoning") parts.push({ type, text, ...NO_SIGNATURE });
    else parts.push({ type, text, ...(citations.length > 0 ? { citations } : {}) });
  }
  const refusal = textOf(message["refusal"]);
  if (refusal !== "") parts.push({ type: "refusal", text: refusal });
  const calls = listOf(message["tool_calls"]).filter(isRecord);
  for (const call of calls) parts.push(decodeCall(call, newId));
  const reason = decodeFinishReason(choice["finish_reason"], calls.length > 0);
  const usage = body["usage"];
  return {
    id: textOrNull(body["id"]),
    model: textOrNull(body["model"]),
    created: numberOrNull(body["created"]),
    parts,
    searches: [],
    stopReason: refusal !== "" && reason === "stop" ? "refusal" : reason,
    stopSequence: null,
    usage: isRecord(usage) ? decodeChatUsage(usage) : null,
  };
}

function decodeCall(call: Json, newId: NewId): Part {
  const isCustom = call["type"] === "custom";
  const called = recordOf(call[isCustom ? "custom" : "function"]);
  const id = textOf(call["id"]);
  const google = recordOf(recordOf(call["extra_content"])["google"]);
  const signature = textOrNull(google["thought_signature"]);
  return {
    type: "tool_call",
    id: id === "" ? newId("call_") : id,
    name: textOf(called["name"]),
    arguments: textOf(called[isCustom ? "input" : "arguments"]),
    isCustom,
    ...(signature === null ? {} : { signature }),
  };
}

/** Perplexity lists the sources of the whole answer beside it: with titles in `search_results`, as addresses in `citations`. */
export function decodeSources(body: Json): Citation[] {
  const found = listOf(body["search_results"]).map(recordOf);
  const sources = found.length > 0 ? found : listOf(body["citations"]).map((url) => ({ url, title: null }));
  return sources.flatMap(({ url, title }) =>
    typeof url === "string" ? [{ url, title: textOrNull(title), quote: null, start: null, end: null }] : [],
  );
}

export function decodeAnnotations(value: unknown): Citation[] {
  return listOf(value).flatMap((entry) => {
    const holder = recordOf(entry);
    // Chat completions nests the citation, the responses dialect does not.
    const citation = isRecord(holder["url_citation"]) ? holder["url_citation"] : holder;
    const url = textOrNull(citation["url"]);
    if (url === null) return [];
    return [
      {
        url,
        title: textOrNull(citation["title"]),
        quote: null,
        start: numberOrNull(citation["start_index"]),
        end: numberOrNull(citation["end_index"]),
      },
    ];
  });
}
