/** The messages of a chat completions request into turns. */
import { InvalidRequestError } from "../errors.ts";
import { cacheMarkOf } from "../cache-marks.ts";
import { sourceOfUrl } from "../data-uri.ts";
import {
  listOf,
  optionalText,
  recordOf,
  requireList,
  requireName,
  requireRecord,
  requireText,
  textOrNull,
  type Json,
} from "../json.ts";
import type { Losses } from "../losses.ts";
import type { Part, PromptPart, TextPart, ToolCallPart } from "../neutral/part.ts";
import type { NeutralRequest, Turn } from "../neutral/request.ts";
import { decodeReasoning } from "./reasoning-fields.ts";

export function decodeMessages(
  messages: readonly unknown[],
  losses: Losses,
): Pick<NeutralRequest, "system" | "turns"> {
  const system: TextPart[] = [];
  const turns: Turn[] = [];
  for (const [i, value] of messages.entries()) {
    const path = `messages[${i}]`;
    const message = requireRecord(value, path);
    if (message["name"] != null && message["role"] !== "tool") losses.note(`${path}.name`);
    switch (message["role"]) {
      case "system":
      case "developer": {
        const parts = decodeTexts(message, path);
        if (turns.length === 0) system.push(...parts);
        else turns.push({ role: "system", parts, path });
        break;
      }
      case "user":
        turns.push({ role: "user", parts: decodeUser(message, path, losses), path });
        break;
      case "assistant":
        turns.push({ role: "assistant", parts: decodeAssistant(message, path, losses), path });
        break;
      case "tool":
        turns.push({ role: "user", parts: [decodeToolResult(message, path, losses)], path });
        break;
      default:
        throw new InvalidRequestError(`${path}.role`, `${path}.role is not a known role`);
    }
  }
  return { system, turns };
}

function decodeTexts(message: Json, path: string): TextPart[] {
  const content = message["content"];
  const cache = cacheMarkOf(message) ?? undefined;
  if (typeof content === "string") return [{ type: "text", text: content, cache }];
  return requireList(content, `${path}.content`).map((value, i) => {
    const part = requireRecord(value, `${path}.content[${i}]`);
    const text = requireText(part["text"], `${path}.content[${i}].text`);
    return { type: "text", text, cache: cacheMarkOf(part) ?? undefined };
  });
}

function decodeUser(message: Json, path: string, losses: Losses): Part[] {
  const content = message["content"];
  if (typeof content === "string") {
    return [{ type: "text", text: content, cache: cacheMarkOf(message) ?? undefined }];
  }
  return requireList(content, `${path}.content`).flatMap((value, i) =>
    decodePart(requireRecord(value, `${path}.content[${i}]`), `${path}.content[${i}]`, losses),
  );
}

function decodePart(part: Json, path: string, losses: Losses): Part[] {
  const cache = cacheMarkOf(part) ?? undefined;
  switch (part["type"]) {
    case "text":
      return [{ type: "text", text: requireText(part["text"], `${path}.text`), cache }];
    case "image_url": {
      const image = requireRecord(part["image_url"], `${path}.image_url`);
      const url = requireName(image["url"], `${path}.image_url.url`);
      const detail = optionalText(image["detail"], `${path}.image_url.detail`) ?? undefined;
      return [{ type: "image", source: sourceOfUrl(url), detail, cache }];
    }
    case "input_audio": {
      const audio = requireRecord(part["input_audio"], `${path}.input_audio`);
      return [
        {
          type: "audio",
          data: requireText(audio["data"], `${path}.input_audio.data`),
          format: requireName(audio["format"], `${path}.input_audio.format`),
        },
      ];
    }
    case "file": {
      const file = requireRecord(part["file"], `${path}.file`);
      const name = optionalText(file["filename"], `${path}.file.filename`);
      const id = optionalText(file["file_id"], `${path}.file.file_id`);
      const source =
        id === null
          ? sourceOfUrl(requireText(file["file_data"], `${path}.file.file_data`))
          : ({ kind: "file", id } as const);
      return [{ type: "file", source, name, cache }];
    }
    default:
      losses.refuse(path, `the content type ${String(part["type"])} is not known`);
      return [];
  }
}

function decodeAssistant(message: Json, path: string, losses: Losses): Part[] {
  if (message["audio"] != null) losses.refuse(`${path}.audio`);
  if (message["function_call"] != null) losses.refuse(`${path}.function_call`);
  const parts: Part[] = decodeReasoning(message);
  const content = message["content"];
  if (typeof content === "string") {
    if (content !== "") parts.push({ type: "text", text: content, cache: cacheMarkOf(message) ?? undefined });
  } else if (content != null) {
    for (const [i, value] of requireList(content, `${path}.content`).entries()) {
      const at = `${path}.content[${i}]`;
      const part = requireRecord(value, at);
      if (part["type"] === "refusal") {
        parts.push({ type: "refusal", text: requireText(part["refusal"], `${at}.refusal`) });
      } else {
        const text = requireText(part["text"], `${at}.text`);
        parts.push({ type: "text", text, cache: cacheMarkOf(part) ?? undefined });
      }
    }
  }
  const refusal = optionalText(message["refusal"], `${path}.refusal`);
  if (refusal !== null) parts.push({ type: "refusal", text: refusal });
  for (const [i, call] of listOf(message["tool_calls"]).entries()) {
    parts.push(decodeToolCall(call, `${path}.tool_calls[${i}]`));
  }
  return parts;
}

function decodeToolCall(value: unknown, path: string): ToolCallPart {
  const call = requireRecord(value, path);
  const id = requireName(call["id"], `${path}.id`);
  if (call["type"] === "custom") {
    const custom = requireRecord(call["custom"], `${path}.custom`);
    return {
      type: "tool_call",
      id,
      name: requireName(custom["name"], `${path}.custom.name`),
      arguments: requireText(custom["input"], `${path}.custom.input`),
      isCustom: true,
    };
  }
  const called = requireRecord(call["function"], `${path}.function`);
  const google = recordOf(recordOf(call["extra_content"])["google"]);
  return {
    type: "tool_call",
    id,
    name: requireName(called["name"], `${path}.function.name`),
    arguments: requireText(called["arguments"], `${path}.function.arguments`),
    isCustom: false,
    signature: textOrNull(google["thought_signature"]) ?? undefined,
  };
}

function decodeToolResult(message: Json, path: string, losses: Losses): Part {
  const content = message["content"];
  const parts =
    typeof content === "string"
      ? [{ type: "text" as const, text: content }]
      : decodeUser(message, path, losses);
  return {
    type: "tool_result",
    callId: requireName(message["tool_call_id"], `${path}.tool_call_id`),
    parts: parts.filter(isPromptPart),
    isError: false,
    isCustom: false,
    cache: typeof content === "string" ? (cacheMarkOf(message) ?? undefined) : undefined,
  };
}

function isPromptPart(part: Part): part is PromptPart {
  return part.type === "text" || part.type === "image" || part.type === "file";
}
