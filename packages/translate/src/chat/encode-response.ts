/** The neutral form into a chat completion. */
import type { Citation, ReasoningPart } from "../neutral/part.ts";
import type { NeutralResponse } from "../neutral/response.ts";
import type { ResponseContext } from "../options.ts";
import { geminiReasoning } from "../signatures.ts";
import { encodeReasoning } from "./reasoning-fields.ts";
import { encodeFinishReason } from "./stop-reason.ts";
import { encodeChatUsage } from "./usage.ts";

export function encodeChatResponse(
  response: NeutralResponse,
  context: ResponseContext,
): Record<string, unknown> {
  let text: string | null = null;
  let refusal: string | null = null;
  const reasoning: ReasoningPart[] = [];
  const calls: unknown[] = [];
  const annotations: unknown[] = [];
  for (const part of response.parts) {
    if (part.type === "text") {
      const start = text?.length ?? 0;
      text = (text ?? "") + part.text;
      for (const citation of part.citations ?? []) {
        annotations.push(encodeUrlCitation(citation, start, text.length));
      }
      if (part.signature !== undefined) reasoning.push(geminiReasoning(part.signature));
    } else if (part.type === "refusal") refusal = (refusal ?? "") + part.text;
    else if (part.type === "reasoning") reasoning.push(part);
    else if (part.type === "tool_call") {
      calls.push({
        id: part.id,
        ...encodeCalled(part.name, part.arguments, part.isCustom),
        ...googleSignature(part.signature ?? null),
      });
    }
  }
  return {
    id: response.id ?? context.newId("chatcmpl-"),
    object: "chat.completion",
    created: response.created ?? context.now,
    model: context.responseModel ?? response.model ?? context.model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text,
          refusal,
          ...(annotations.length > 0 ? { annotations } : {}),
          ...encodeReasoning(reasoning),
          ...(calls.length > 0 ? { tool_calls: calls } : {}),
        },
        logprobs: null,
        finish_reason: encodeFinishReason(response.stopReason, refusal !== null),
      },
    ],
    ...(response.usage === null ? {} : { usage: encodeChatUsage(response.usage) }),
  };
}

export function encodeCalled(name: string, text: string, isCustom: boolean): Record<string, unknown> {
  return isCustom
    ? { type: "custom", custom: { name, input: text } }
    : { type: "function", function: { name, arguments: text } };
}

export function googleSignature(signature: string | null): Record<string, unknown> {
  return signature === null ? {} : { extra_content: { google: { thought_signature: signature } } };
}

/** Without a place of its own, a citation covers the text block that bears it. */
export function encodeUrlCitation(citation: Citation, start: number, end: number): Record<string, unknown> {
  return {
    type: "url_citation",
    url_citation: {
      url: citation.url,
      title: citation.title ?? "",
      start_index: citation.start ?? start,
      end_index: citation.end ?? end,
    },
  };
}
