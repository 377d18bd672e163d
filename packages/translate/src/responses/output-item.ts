/** Output items of the responses dialect, alike in whole responses and in streams. */
import type { Citation, ReasoningPart, ToolCallPart } from "../neutral/part.ts";
import type { NewId } from "../response-codec.ts";
import { packSignature } from "../signatures.ts";

type Item = Record<string, unknown>;

export function encodeOutputText(text: string, citations: readonly Citation[]): Item {
  return {
    type: "output_text",
    text,
    annotations: citations.map((citation) => encodeAnnotation(citation, text.length)),
    logprobs: [],
  };
}

export function encodeAnnotation(citation: Citation, length: number): Item {
  return {
    type: "url_citation",
    url: citation.url,
    title: citation.title ?? "",
    start_index: citation.start ?? 0,
    end_index: citation.end ?? length,
  };
}

export function encodeReasoningItem(part: ReasoningPart, newId: NewId): Item {
  return {
    id: part.origin === "responses" && part.id !== null ? part.id : newId("rs_"),
    type: "reasoning",
    summary: part.text === "" ? [] : [{ type: "summary_text", text: part.text }],
    encrypted_content: packSignature(part, "responses"),
  };
}

export function encodeCallItem(
  part: Pick<ToolCallPart, "id" | "name" | "arguments" | "isCustom" | "namespace">,
  itemId: string,
  status: "in_progress" | "completed",
): Item {
  const namespace = part.namespace === undefined ? {} : { namespace: part.namespace };
  return part.isCustom
    ? {
        id: itemId,
        type: "custom_tool_call",
        status,
        call_id: part.id,
        name: part.name,
        ...namespace,
        input: part.arguments,
      }
    : {
        id: itemId,
        type: "function_call",
        status,
        call_id: part.id,
        name: part.name,
        ...namespace,
        arguments: part.arguments,
      };
}
