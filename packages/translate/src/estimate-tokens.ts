/**
 * An estimate of input tokens that needs no tokenizer, for `messages/count_tokens` where the upstream has no such
 * endpoint. Real tokenizers differ by a third on the same text; clients use the figure to decide when to compact a
 * conversation, so it leans high.
 */
import type { Dialect } from "./dialect.ts";
import { DIALECTS } from "./dialects.ts";
import { requireRecord } from "./json.ts";
import { Losses } from "./losses.ts";
import type { Part } from "./neutral/part.ts";

/** Latin text and code have 3 to 4 characters a token; other scripts nearly one. */
const CHARACTERS_PER_TOKEN = 3.5;
const TOKENS_PER_IMAGE = 1600;
/** A page of a PDF is about 2,000 tokens, and 75,000 characters of base64. */
const BASE64_PER_PAGE = 75_000;
const TOKENS_PER_PAGE = 2000;
/** What every message and tool adds around its text. */
const TOKENS_PER_ITEM = 4;

/**
 * Input tokens of a request, estimated from its text and parts. The answer of `count_tokens` is `{input_tokens}`.
 * Throws `InvalidRequestError` for a body that is no request of the dialect.
 */
export function estimateInputTokens(dialect: Dialect, body: unknown): number {
  const source = requireRecord(body, "body");
  const request = DIALECTS[dialect].decodeRequest(source, new Losses("estimate", true));
  let tokens = 0;
  for (const part of request.system) tokens += tokensOfPart(part);
  for (const turn of request.turns) {
    tokens += TOKENS_PER_ITEM;
    for (const part of turn.parts) tokens += tokensOfPart(part);
  }
  const tools = source["tools"];
  if (tools !== undefined) tokens += tokensOfText(JSON.stringify(tools));
  return Math.max(Math.ceil(tokens), 1);
}

function tokensOfPart(part: Part): number {
  switch (part.type) {
    case "text":
    case "refusal":
      return tokensOfText(part.text);
    case "reasoning":
      return tokensOfText(part.text);
    case "image":
      return TOKENS_PER_IMAGE;
    case "file":
      if (part.source.kind === "text") return tokensOfText(part.source.text);
      return part.source.kind === "base64"
        ? Math.ceil(part.source.data.length / BASE64_PER_PAGE) * TOKENS_PER_PAGE
        : TOKENS_PER_PAGE;
    case "audio":
      return part.data.length / 1000;
    case "tool_call":
      return TOKENS_PER_ITEM + tokensOfText(part.name) + tokensOfText(part.arguments);
    case "tool_result":
      return part.parts.reduce((sum, inner) => sum + tokensOfPart(inner), TOKENS_PER_ITEM);
  }
}

function tokensOfText(text: string): number {
  let others = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x24f) others += 1;
  return (text.length - others) / CHARACTERS_PER_TOKEN + others;
}
