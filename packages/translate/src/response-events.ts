/** A whole response as the events of a stream. */
import type { Part } from "./neutral/part.ts";
import type { NeutralResponse } from "./neutral/response.ts";
import type { StreamEvent } from "./neutral/stream-event.ts";

export function eventsOf(response: NeutralResponse): StreamEvent[] {
  const { id, model, created, parts, searches, stopReason, stopSequence, usage } = response;
  const events: StreamEvent[] = [{ type: "start", id, model, created, usage }];
  for (const search of searches) events.push({ type: "search", search });
  for (const [key, part] of parts.entries()) events.push(...eventsOfPart(part, key));
  if (usage !== null) events.push({ type: "usage", usage });
  events.push({ type: "finish", reason: stopReason, stopSequence }, { type: "end" });
  return events;
}

function eventsOfPart(part: Part, key: number): StreamEvent[] {
  switch (part.type) {
    case "text":
      return [
        ...(part.text === "" ? [] : [{ type: "text" as const, text: part.text }]),
        ...(part.citations ?? []).map((citation) => ({ type: "citation" as const, citation })),
        ...(part.signature === undefined
          ? []
          : [{ type: "text_signature" as const, signature: part.signature }]),
        { type: "break" },
      ];
    case "refusal":
      return [{ type: "refusal", text: part.text }];
    case "reasoning": {
      const { text, signature, origin, id, isRedacted } = part;
      return [
        ...(text === "" ? [] : [{ type: "reasoning" as const, text }]),
        ...(signature === null
          ? []
          : [{ type: "reasoning_signature" as const, signature, origin, id, isRedacted }]),
        { type: "break" },
      ];
    }
    case "tool_call": {
      const { id, name, isCustom, namespace = null, signature = null } = part;
      return [
        { type: "tool_start", key, id, name, isCustom, namespace, signature },
        { type: "tool_delta", key, text: part.arguments },
        { type: "tool_end", key },
      ];
    }
    default:
      // No response has these.
      return [];
  }
}
