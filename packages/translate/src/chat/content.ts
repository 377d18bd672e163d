/** The content of a message or a delta: text or, as Mistral's models that reason have it, a list of parts with thinking and text. */
import { listOf, recordOf, textOf } from "../json.ts";

export interface ContentPart {
  readonly type: "text" | "reasoning";
  readonly text: string;
}

/** Without empty parts; neighbours of one type are one part. */
export function readContent(content: unknown): readonly ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  const parts: ContentPart[] = [];
  for (const entry of listOf(content)) {
    const { thinking, text: ownText } = recordOf(entry);
    const type = thinking === undefined ? "text" : "reasoning";
    const text = thinking === undefined ? textOf(ownText) : thinkingText(thinking);
    const last = parts.at(-1);
    if (text === "") continue;
    if (last?.type === type) parts[parts.length - 1] = { type, text: last.text + text };
    else parts.push({ type, text });
  }
  return parts;
}

/** Mistral nests a list of texts. */
function thinkingText(thinking: unknown): string {
  if (typeof thinking === "string") return thinking;
  return listOf(thinking)
    .map((part) => textOf(recordOf(part)["text"]))
    .join("");
}
