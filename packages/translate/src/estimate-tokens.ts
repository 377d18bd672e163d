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

/** Runs of one kind, as tokenizers split a text: words with the space before them, numbers, long codes, signs, blank lines and other scripts. */
const RUNS =
  /[A-Za-z0-9+/_=-]{32,}|[A-Za-z\u00c0-\u024f]+|[0-9]+|[\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+|[^\s\x21-\x7e]+|[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]+|\s{2,}|\n| (?=[0-9])/gu;
/** Characters of a run per token, as measured with the tokenizer of current models, rounded so that the sum leans high. */
const CODE = 1.4;
const WORD = 6;
const DIGITS = 3;
const SIGNS = 2;
const IDEOGRAPHS = 1.3;
const OTHER_SCRIPTS = 3;
const BLANKS = 16;
/** One character again and again, as in a rule of a table. */
const REPEATED = 8;

function tokensOfText(text: string): number {
  let tokens = 0;
  for (const [run] of text.matchAll(RUNS)) tokens += Math.ceil(run.length / charactersPerToken(run));
  return tokens;
}

function charactersPerToken(run: string): number {
  const first = run.charCodeAt(0);
  if (run.length >= 32 && /^[A-Za-z0-9+/_=-]+$/.test(run)) {
    return /^(.)\1*$/.test(run) ? REPEATED : isCode(run) ? CODE : WORD;
  }
  if (/^[A-Za-z\u00c0-\u024f]/.test(run)) return WORD;
  if (first >= 0x30 && first <= 0x39) return DIGITS;
  if (/^\s/.test(run)) return BLANKS;
  if (first <= 0x7e) return SIGNS;
  return /^[\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]/.test(run) ? IDEOGRAPHS : OTHER_SCRIPTS;
}

/** Base64 and the like change between cases and digits all the time; a long name does not. */
function isCode(run: string): boolean {
  const changes = run.match(/[a-z][A-Z0-9]|[A-Z0-9][a-z]/g)?.length ?? 0;
  return changes * 6 > run.length || /^[0-9a-f-]+$/i.test(run);
}
