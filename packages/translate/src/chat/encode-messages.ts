/**
 * Turns into the messages of a chat completions request.
 *
 * A user turn of another dialect can hold tool results, text and images side by side. Chat completions wants one `tool`
 * message per result directly after the call, so results come first and the rest follows as one user message. A tool
 * message holds only text: images and files of a result move into that user message.
 */
import { toCacheBreakpoint, toCacheControl } from "../cache-marks.ts";
import { mediaTypeOfName, urlOfSource } from "../data-uri.ts";
import type {
  CacheMark,
  Part,
  PromptPart,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../neutral/part.ts";
import type { NeutralRequest, Turn } from "../neutral/request.ts";
import type { EncodeEnvironment } from "../request-codec.ts";
import { sourceField } from "../source-fields.ts";
import { wrapCustomInput } from "../tool-format.ts";
import { encodeReasoning } from "./reasoning-fields.ts";

type Message = Record<string, unknown>;

export function encodeMessages(request: NeutralRequest, environment: EncodeEnvironment): Message[] {
  const { systemRole } = environment.traits;
  const messages: Message[] = [];
  if (request.system.length > 0) {
    messages.push({ role: systemRole, content: encodeSystem(request.system, environment) });
  }
  for (const turn of request.turns) {
    if (turn.role === "system") {
      messages.push({ role: systemRole, content: encodeSystem(turn.parts, environment) });
    } else if (turn.role === "assistant") {
      messages.push(encodeAssistant(turn, environment));
    } else {
      messages.push(...encodeUser(turn, environment));
    }
  }
  return messages;
}

/** One string unless marks have to be kept: several providers of this shape reject a system text in parts. */
function encodeSystem(parts: readonly Part[], environment: EncodeEnvironment): unknown {
  const content = encodeContent(parts, "system", environment);
  if (!Array.isArray(content)) return content;
  const texts = content as readonly Message[];
  return texts.every((part) => Object.keys(part).length === 2)
    ? texts.map((part) => part["text"]).join("\n\n")
    : texts;
}

function encodeUser(turn: Turn, environment: EncodeEnvironment): Message[] {
  const messages: Message[] = [];
  const rest: Part[] = [];
  for (const part of turn.parts) {
    if (part.type !== "tool_result") rest.push(part);
    else {
      messages.push(encodeToolResult(part, environment));
      rest.push(...part.parts.filter((inner) => inner.type !== "text"));
    }
  }
  if (rest.length > 0 || messages.length === 0) {
    messages.push({ role: "user", content: encodeContent(rest, turn.path, environment) });
  }
  return messages;
}

function encodeToolResult(part: ToolResultPart, environment: EncodeEnvironment): Message {
  const text = part.parts.flatMap((inner) => (inner.type === "text" ? [inner.text] : [])).join("\n");
  const hasMedia = part.parts.some((inner) => inner.type !== "text");
  const shown = text === "" && hasMedia ? "The result follows in the next message." : text;
  const mark = part.cache ?? part.parts.find((inner) => inner.cache !== undefined)?.cache;
  const content = part.isError ? `Error: ${shown}` : shown;
  const cached = mark === undefined ? {} : encodeMark(mark, environment);
  return {
    role: "tool",
    tool_call_id: environment.names.id(part.callId),
    content: Object.keys(cached).length === 0 ? content : [{ type: "text", text: content, ...cached }],
  };
}

/** A plain string where one text without a mark is all there is: every provider accepts it. */
function encodeContent(parts: readonly Part[], path: string, environment: EncodeEnvironment): unknown {
  const encoded = parts.flatMap((part, i) => encodePart(part, `${path}.content[${i}]`, environment));
  const [first] = encoded;
  if (first === undefined) return "";
  const isPlain = encoded.length === 1 && first["type"] === "text" && Object.keys(first).length === 2;
  return isPlain ? first["text"] : encoded;
}

function encodePart(part: Part, path: string, environment: EncodeEnvironment): Message[] {
  switch (part.type) {
    case "text":
      noteCitations(part, environment);
      return [{ type: "text", text: part.text, ...markOf(part, environment) }];
    case "image":
      if (part.source.kind === "file") return lose(path, environment);
      return [
        {
          type: "image_url",
          image_url: {
            url: urlOfSource(part.source),
            ...(part.detail === undefined ? {} : { detail: part.detail }),
          },
          ...markOf(part, environment),
        },
      ];
    case "file":
      return encodeFile(part, path, environment);
    case "audio":
      return [{ type: "input_audio", input_audio: { data: part.data, format: part.format } }];
    case "reasoning":
    case "tool_call":
    case "tool_result":
    case "refusal":
      return lose(path, environment);
  }
}

function encodeFile(
  part: Extract<PromptPart, { type: "file" }>,
  path: string,
  environment: EncodeEnvironment,
): Message[] {
  const { source, name } = part;
  const mark = markOf(part, environment);
  if (source.kind === "text") {
    return [{ type: "text", text: name === null ? source.text : `${name}:\n${source.text}`, ...mark }];
  }
  if (source.kind === "base64") {
    const filename = name ?? (source.mediaType === "application/pdf" ? "document.pdf" : "document");
    return [{ type: "file", file: { filename, file_data: urlOfSource(source) }, ...mark }];
  }
  if (source.kind === "url" && isImageUrl(source.url)) {
    return [{ type: "image_url", image_url: { url: source.url }, ...mark }];
  }
  return lose(path, environment);
}

function isImageUrl(url: string): boolean {
  return mediaTypeOfName(url)?.startsWith("image/") === true;
}

function lose(path: string, { losses }: EncodeEnvironment): Message[] {
  losses.refuse(path);
  return [];
}

function noteCitations(part: TextPart, { losses }: EncodeEnvironment): void {
  if (part.citations !== undefined && part.citations.length > 0) losses.note("citations");
}

function markOf(part: PromptPart, environment: EncodeEnvironment): Message {
  return part.cache === undefined ? {} : encodeMark(part.cache, environment);
}

function encodeMark(mark: CacheMark, { from, traits, losses }: EncodeEnvironment): Message {
  if (traits.takesCacheControl) return { cache_control: toCacheControl(mark) };
  if (traits.takesCacheBreakpoints) return { prompt_cache_breakpoint: toCacheBreakpoint(mark) };
  losses.note(sourceField(from, "cache"));
  return {};
}

function encodeAssistant(turn: Turn, environment: EncodeEnvironment): Message {
  const { traits, losses } = environment;
  const texts: string[] = [];
  const refusals: string[] = [];
  const reasoning: ReasoningPart[] = [];
  const calls: unknown[] = [];
  for (const [i, part] of turn.parts.entries()) {
    if (part.type === "text") {
      noteCitations(part, environment);
      if (part.cache !== undefined) losses.note(sourceField(environment.from, "cache"));
      texts.push(part.text);
    } else if (part.type === "refusal") refusals.push(part.text);
    else if (part.type === "reasoning") reasoning.push(part);
    else if (part.type === "tool_call") calls.push(encodeToolCall(part, environment));
    else losses.refuse(`${turn.path}.content[${i}]`);
  }
  if (reasoning.length > 0 && !traits.takesReasoningContent) losses.note(`${turn.path}.reasoning`);
  return {
    role: "assistant",
    content: texts.length > 0 ? texts.join("") : calls.length > 0 || refusals.length > 0 ? null : "",
    ...(refusals.length > 0 ? { refusal: refusals.join("") } : {}),
    ...(traits.takesReasoningContent ? encodeReasoning(reasoning) : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function encodeToolCall(part: ToolCallPart, environment: EncodeEnvironment): Message {
  const { names, traits, losses } = environment;
  const isSigned = part.signature !== undefined && traits.takesReasoningContent;
  if (part.signature !== undefined && !isSigned) losses.note("thought_signature");
  return {
    id: names.id(part.id),
    type: "function",
    function: {
      name: names.name(part.name, part.namespace ?? null, part.isCustom),
      arguments: part.isCustom ? wrapCustomInput(part.arguments) : part.arguments,
    },
    ...(isSigned ? { extra_content: { google: { thought_signature: part.signature } } } : {}),
  };
}
