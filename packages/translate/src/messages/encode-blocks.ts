/**
 * Turns into the messages and blocks of a messages request.
 *
 * 1. Adjacent turns of one role become one message: the provider wants user and assistant to alternate.
 * 2. In a user message `tool_result` blocks come first: the provider wants the results directly after the calls.
 * 3. Blank text blocks are left out: the provider rejects them, and they say nothing.
 */
import { toCacheControl } from "../cache-marks.ts";
import type {
  CacheMark,
  FilePart,
  MediaSource,
  Part,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../neutral/part.ts";
import type { Turn } from "../neutral/request.ts";
import type { EncodeEnvironment } from "../request-codec.ts";
import { packSignature } from "../signatures.ts";
import { parseArguments, wrapCustomInput } from "../tool-format.ts";

type Block = Record<string, unknown>;

/** A plain string where one text without a mark is all there is. */
export function encodeSystem(parts: readonly TextPart[]): unknown {
  const texts = parts.filter((part) => part.text.trim() !== "");
  const [first] = texts;
  if (texts.length === 1 && first !== undefined && first.cache === undefined) return first.text;
  return texts.map((part) => ({ type: "text", text: part.text, ...mark(part.cache) }));
}

export function encodeTurns(turns: readonly Turn[], environment: EncodeEnvironment): Block[] {
  const { traits, losses } = environment;
  const messages: { role: string; content: Block[] }[] = [];
  for (const turn of turns) {
    let role: string = turn.role;
    if (turn.role === "system" && !traits.takesSystemMessages) {
      losses.note(`${turn.path}.role`);
      role = "user";
    }
    const content = turn.parts.flatMap((part, i) =>
      encodePart(part, `${turn.path}.content[${i}]`, environment),
    );
    if (content.length === 0) continue;
    const last = messages.at(-1);
    if (last !== undefined && last.role === role) last.content.push(...content);
    else messages.push({ role, content });
  }
  return messages.map(({ role, content }) => ({
    role,
    content: asContent(role === "user" ? resultsFirst(content) : content),
  }));
}

function resultsFirst(blocks: Block[]): Block[] {
  const isResult = (block: Block) => block["type"] === "tool_result";
  if (!blocks.some(isResult) || blocks.every(isResult)) return blocks;
  return [...blocks.filter(isResult), ...blocks.filter((block) => !isResult(block))];
}

function asContent(blocks: Block[]): unknown {
  const [first] = blocks;
  const isPlain = blocks.length === 1 && first?.["type"] === "text" && Object.keys(first).length === 2;
  return isPlain ? first["text"] : blocks;
}

function encodePart(part: Part, path: string, environment: EncodeEnvironment): Block[] {
  const { losses } = environment;
  switch (part.type) {
    case "text":
      if (part.citations !== undefined) losses.note("citations");
      return part.text.trim() === "" ? [] : [{ type: "text", text: part.text, ...mark(part.cache) }];
    case "refusal":
      return part.text.trim() === "" ? [] : [{ type: "text", text: part.text }];
    case "image":
      if (part.detail !== undefined && part.detail !== "auto") losses.note("image_url.detail");
      if (part.source.kind === "file") return lose(path, environment);
      return [{ type: "image", source: encodeSource(part.source), ...mark(part.cache) }];
    case "file":
      return encodeFile(part, path, environment);
    case "audio":
      return lose(path, environment);
    case "reasoning":
      return encodeReasoning(part, path, environment);
    case "tool_call":
      return [encodeToolCall(part, environment)];
    case "tool_result":
      return [encodeToolResult(part, path, environment)];
  }
}

/** Only the provider's own signed thinking may come back; it rejects any other. */
function encodeReasoning(
  part: Extract<Part, { type: "reasoning" }>,
  path: string,
  { losses }: EncodeEnvironment,
): Block[] {
  if (part.origin !== "messages" || part.signature === null) {
    losses.note(path.replace(/\.content\[\d+\]$/, ".reasoning"));
    return [];
  }
  if (part.isRedacted) return [{ type: "redacted_thinking", data: part.signature }];
  return [{ type: "thinking", thinking: part.text, signature: packSignature(part, "messages") }];
}

function encodeToolCall(part: ToolCallPart, { names, losses }: EncodeEnvironment): Block {
  if (part.signature !== undefined) losses.note("thought_signature");
  return {
    type: "tool_use",
    id: names.id(part.id),
    name: names.name(part.name, part.namespace ?? null, part.isCustom),
    input: parseArguments(part.isCustom ? wrapCustomInput(part.arguments) : part.arguments),
    ...mark(part.cache),
  };
}

function encodeToolResult(part: ToolResultPart, path: string, environment: EncodeEnvironment): Block {
  const blocks = part.parts.flatMap((inner, i) => encodePart(inner, `${path}.content[${i}]`, environment));
  return {
    type: "tool_result",
    tool_use_id: environment.names.id(part.callId),
    content: blocks.length === 0 ? "" : asContent(blocks),
    ...(part.isError ? { is_error: true } : {}),
    ...mark(part.cache),
  };
}

function encodeFile(part: FilePart, path: string, environment: EncodeEnvironment): Block[] {
  const { source } = part;
  const tail = { ...(part.name === null ? {} : { title: part.name }), ...mark(part.cache) };
  if (source.kind === "text") {
    return [
      { type: "document", source: { type: "text", media_type: "text/plain", data: source.text }, ...tail },
    ];
  }
  if (source.kind === "file") return lose(path, environment);
  if (source.kind === "base64" && source.mediaType.startsWith("image/")) {
    return [{ type: "image", source: encodeSource(source), ...mark(part.cache) }];
  }
  if (source.kind === "base64" && source.mediaType !== "application/pdf") {
    // Base64 documents are PDF only. Plain text could be decoded, but a file that was not asked to be text is not guessed.
    return lose(path, environment);
  }
  return [{ type: "document", source: encodeSource(source), ...tail }];
}

function encodeSource(source: Exclude<MediaSource, { kind: "file" }>): Block {
  return source.kind === "url"
    ? { type: "url", url: source.url }
    : { type: "base64", media_type: source.mediaType, data: source.data };
}

function lose(path: string, { losses }: EncodeEnvironment): Block[] {
  losses.refuse(path);
  return [];
}

function mark(cache: CacheMark | undefined): Block {
  return cache === undefined ? {} : { cache_control: toCacheControl(cache) };
}
