/**
 * Input items of the responses dialect into turns. Reasoning, messages and calls of the assistant are items of their
 * own here; those that stand together make one turn, and so do the outputs of calls.
 */
import { cacheMarkOf } from "../cache-marks.ts";
import { sourceOfUrl } from "../data-uri.ts";
import { InvalidRequestError } from "../errors.ts";
import {
  isRecord,
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
import type { MediaSource, Part, PromptPart, ReasoningPart, TextPart } from "../neutral/part.ts";
import type { NeutralRequest, Tool, Turn } from "../neutral/request.ts";
import { unpackSignature } from "../signatures.ts";
import { decodeTools } from "./decode-tools.ts";

/** What tools of the provider left in the history. The assistant's messages hold what came of it. */
const HOSTED_ITEMS = new Set([
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "mcp_list_tools",
  "tool_search_call",
  "tool_search_output",
  "compaction_trigger",
]);

/** `tools` are those that an item of the input adds to the request's own. */
export type DecodedInput = Pick<NeutralRequest, "system" | "turns" | "tools">;

interface OpenTurn {
  readonly role: Turn["role"];
  readonly parts: Part[];
  readonly path: string;
  readonly kind: "assistant" | "outputs" | "message";
}

export function decodeInput(input: unknown, losses: Losses): DecodedInput {
  if (typeof input === "string") {
    return {
      system: [],
      tools: [],
      turns: [{ role: "user", parts: [{ type: "text", text: input }], path: "input" }],
    };
  }
  const system: TextPart[] = [];
  const tools: Tool[] = [];
  const turns: OpenTurn[] = [];
  const add = (kind: OpenTurn["kind"], role: Turn["role"], parts: readonly Part[], path: string) => {
    const last = turns.at(-1);
    if (last !== undefined && kind !== "message" && last.kind === kind) last.parts.push(...parts);
    else turns.push({ kind, role, parts: [...parts], path });
  };
  for (const [i, value] of requireList(input, "input").entries()) {
    const path = `input[${i}]`;
    const item = requireRecord(value, path);
    const type = item["type"] ?? "message";
    if (type === "message") {
      const role = item["role"];
      const parts = decodeContent(item["content"], `${path}.content`, losses);
      if (role === "user") add("message", "user", parts, path);
      else if (role === "assistant") add("assistant", "assistant", parts, path);
      else if (role !== "system" && role !== "developer") {
        throw new InvalidRequestError(`${path}.role`, `${path}.role is not a known role`);
      } else if (turns.length === 0) system.push(...parts.filter((part) => part.type === "text"));
      else add("message", "system", parts, path);
    } else if (type === "function_call_output" || type === "custom_tool_call_output") {
      add("outputs", "user", [decodeOutput(item, path, losses)], path);
    } else if (type === "function_call" || type === "custom_tool_call") {
      add("assistant", "assistant", [decodeCall(item, path)], path);
    } else if (type === "reasoning") add("assistant", "assistant", [decodeReasoningItem(item)], path);
    else if (type === "additional_tools") {
      tools.push(...decodeTools(requireList(item["tools"], `${path}.tools`), `${path}.tools`, losses));
    } else if (type === "item_reference") {
      const id = textOf(item["id"]);
      throw new InvalidRequestError(
        path,
        `Item with id '${id}' not found. Items are not stored: send store: false, and the items themselves`,
      );
    } else if (typeof type === "string" && HOSTED_ITEMS.has(type)) losses.note(path);
    else losses.refuse(path, `the item type ${textOf(type)} is not known`);
  }
  return { system, turns, tools };
}

export function decodeContent(content: unknown, path: string, losses: Losses): Part[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return requireList(content, path).flatMap((value, i) =>
    decodePart(requireRecord(value, `${path}[${i}]`), `${path}[${i}]`, losses),
  );
}

function decodePart(part: Json, path: string, losses: Losses): Part[] {
  const cache = cacheMarkOf(part) ?? undefined;
  switch (part["type"]) {
    case "input_text":
    case "output_text":
    case "text":
      return [{ type: "text", text: requireText(part["text"], `${path}.text`), cache }];
    case "refusal":
      return [{ type: "refusal", text: requireText(part["refusal"], `${path}.refusal`) }];
    case "input_image":
      return [
        {
          type: "image",
          source: decodeSource(part, "image_url", path),
          detail:
            part["detail"] === "auto"
              ? undefined
              : (optionalText(part["detail"], `${path}.detail`) ?? undefined),
          cache,
        },
      ];
    case "input_file": {
      const name = optionalText(part["filename"], `${path}.filename`);
      const field = part["file_url"] == null ? "file_data" : "file_url";
      return [{ type: "file", source: decodeSource(part, field, path), name, cache }];
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
    default:
      losses.refuse(path, `the content type ${String(part["type"])} is not known`);
      return [];
  }
}

function decodeSource(part: Json, field: string, path: string): MediaSource {
  const id = optionalText(part["file_id"], `${path}.file_id`);
  if (id !== null) return { kind: "file", id };
  return sourceOfUrl(requireName(part[field], `${path}.${field}`));
}

function decodeCall(item: Json, path: string): Part {
  const isCustom = item["type"] === "custom_tool_call";
  const field = isCustom ? "input" : "arguments";
  return {
    type: "tool_call",
    id: requireName(item["call_id"], `${path}.call_id`),
    name: requireName(item["name"], `${path}.name`),
    arguments: requireText(item[field], `${path}.${field}`),
    isCustom,
    namespace: optionalText(item["namespace"], `${path}.namespace`) ?? undefined,
  };
}

function decodeOutput(item: Json, path: string, losses: Losses): Part {
  const parts = decodeContent(item["output"] ?? "", `${path}.output`, losses);
  return {
    type: "tool_result",
    callId: requireName(item["call_id"], `${path}.call_id`),
    parts: parts.filter(
      (part): part is PromptPart => part.type === "text" || part.type === "image" || part.type === "file",
    ),
    isError: false,
    isCustom: item["type"] === "custom_tool_call_output",
  };
}

export function decodeReasoningItem(item: Json): ReasoningPart {
  const texts = [...listOf(item["summary"]), ...listOf(item["content"])]
    .filter(isRecord)
    .map((entry) => textOf(recordOf(entry)["text"]));
  const signature = unpackSignature(textOrNull(item["encrypted_content"]), "responses");
  return {
    type: "reasoning",
    text: texts.join("\n\n"),
    ...signature,
    id: signature.origin === "responses" ? textOrNull(item["id"]) : signature.id,
  };
}
