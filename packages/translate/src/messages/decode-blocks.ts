/** Content blocks of the messages dialect into parts. */
import { cacheMarkOf } from "../cache-marks.ts";
import { InvalidRequestError } from "../errors.ts";
import {
  listOf,
  optionalText,
  recordOf,
  requireList,
  requireName,
  requireRecord,
  requireText,
  textOf,
  textOrNull,
  type Json,
} from "../json.ts";
import type { Losses } from "../losses.ts";
import type { MediaSource, Part, PromptPart, TextPart } from "../neutral/part.ts";
import { unpackSignature } from "../signatures.ts";
import { decodeCitations } from "./citations.ts";

/** Blocks of tools that the provider ran itself. Their text follows in text blocks, so the conversation stays whole without them. */
const SERVER_BLOCK =
  /^(server_tool_use|mcp_tool_use|\w+_tool_result|container_upload|tool_reference|compaction)$/;

export function decodeSystem(value: unknown): TextPart[] {
  if (typeof value === "string") return [{ type: "text", text: value }];
  return requireList(value, "system").map((entry, i) => {
    const block = requireRecord(entry, `system[${i}]`);
    return {
      type: "text",
      text: requireText(block["text"], `system[${i}].text`),
      cache: cacheMarkOf(block) ?? undefined,
    };
  });
}

export function decodeBlocks(content: unknown, path: string, losses: Losses): Part[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return requireList(content, path).flatMap((block, i) =>
    decodeBlock(requireRecord(block, `${path}[${i}]`), `${path}[${i}]`, losses),
  );
}

function decodeBlock(block: Json, path: string, losses: Losses): Part[] {
  const cache = cacheMarkOf(block) ?? undefined;
  switch (block["type"]) {
    case "text": {
      const citations = decodeCitations(block["citations"]);
      return [
        {
          type: "text",
          text: requireText(block["text"], `${path}.text`),
          cache,
          ...(citations.length > 0 ? { citations } : {}),
        },
      ];
    }
    case "image":
      return [{ type: "image", source: decodeSource(block["source"], `${path}.source`), cache }];
    case "document":
      return decodeDocument(block, path, losses);
    case "search_result": {
      losses.note(path);
      const texts = listOf(block["content"]).map((inner) => textOf(recordOf(inner)["text"]));
      const head = `${textOf(block["title"])} (${textOf(block["source"])})`;
      return [{ type: "text", text: [head, ...texts].join("\n"), cache }];
    }
    case "thinking":
      return [
        {
          type: "reasoning",
          text: textOf(block["thinking"]),
          ...unpackSignature(textOrNull(block["signature"]), "messages"),
        },
      ];
    case "redacted_thinking":
      return [decodeRedacted(requireText(block["data"], `${path}.data`))];
    case "tool_use":
      return [
        {
          type: "tool_call",
          id: requireName(block["id"], `${path}.id`),
          name: requireName(block["name"], `${path}.name`),
          arguments: JSON.stringify(recordOf(block["input"])),
          isCustom: false,
          cache,
        },
      ];
    case "tool_result":
      return [
        {
          type: "tool_result",
          callId: requireName(block["tool_use_id"], `${path}.tool_use_id`),
          parts: decodeResult(block["content"], `${path}.content`, losses),
          isError: block["is_error"] === true,
          isCustom: false,
          cache,
        },
      ];
    default:
      if (typeof block["type"] === "string" && SERVER_BLOCK.test(block["type"])) losses.note(path);
      else losses.refuse(path, `the block type ${String(block["type"])} is not known`);
      return [];
  }
}

export function decodeRedacted(data: string): Part {
  const unpacked = unpackSignature(data, "messages");
  return { type: "reasoning", text: "", ...unpacked, isRedacted: true };
}

function decodeResult(content: unknown, path: string, losses: Losses): PromptPart[] {
  if (content == null) return [];
  return decodeBlocks(content, path, losses).filter(
    (part) => part.type === "text" || part.type === "image" || part.type === "file",
  );
}

function decodeSource(value: unknown, path: string): MediaSource {
  const source = requireRecord(value, path);
  switch (source["type"]) {
    case "base64":
      return {
        kind: "base64",
        mediaType: requireName(source["media_type"], `${path}.media_type`),
        data: requireText(source["data"], `${path}.data`),
      };
    case "url":
      return { kind: "url", url: requireName(source["url"], `${path}.url`), mediaType: null };
    case "file":
      return { kind: "file", id: requireName(source["file_id"], `${path}.file_id`) };
    default:
      throw new InvalidRequestError(`${path}.type`, `${path}.type is not known`);
  }
}

function decodeDocument(block: Json, path: string, losses: Losses): Part[] {
  const cache = cacheMarkOf(block) ?? undefined;
  const name = optionalText(block["title"], `${path}.title`);
  if (recordOf(block["citations"])["enabled"] === true) losses.note(`${path}.citations`);
  if (block["context"] != null) losses.note(`${path}.context`);
  const source = requireRecord(block["source"], `${path}.source`);
  if (source["type"] === "text") {
    const text = requireText(source["data"], `${path}.source.data`);
    return [{ type: "file", source: { kind: "text", text }, name, cache }];
  }
  if (source["type"] === "content") {
    return decodeBlocks(source["content"], `${path}.source.content`, losses);
  }
  const decoded = decodeSource(source, `${path}.source`);
  const typed = decoded.kind === "url" ? { ...decoded, mediaType: "application/pdf" } : decoded;
  return [{ type: "file", source: typed, name, cache }];
}
